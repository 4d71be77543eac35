/* wattle prune: deletes old days from a store. */
#include "cli/command.h"

#include "base/util.h"
#include "report/report.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include <stddef.h>

struct values {
	const char *store;
	int64_t older_ns;
	bool dry_run;
};

static const struct option options[] = {
	{"store", 0, "URL", "URL of the store: postgresql://user@host/database", OPTION_TEXT,
		.offset = offsetof(struct values, store)},
	{"older", 0, "DUR", "drop days older than this: 90d, 12w, 2y", OPTION_DURATION,
		.offset = offsetof(struct values, older_ns), .least = 86400e9, .most = 9e18, .range = "1d to 280y"},
	{"dry-run", 0, NULL, "only print what would be dropped", OPTION_FLAG,
		.offset = offsetof(struct values, dry_run)},
};

static void add_result(const struct pg_prune *prune, bool dry, struct buf *out)
{
	buf_printf(out, "%s before %s (UTC): %lld day%s in %lld partitions, ",
		dry ? "would drop data from" : "dropped data from", prune->before, (long long)prune->days,
		prune->days == 1 ? "" : "s", (long long)prune->tables);
	human_bytes(out, (double)prune->bytes);
	buf_printf(out, "; %lld completed run%s\n", (long long)prune->runs, prune->runs == 1 ? "" : "s");
}

static int prune(const struct values *values, struct buf *out, struct wattle_error *reterr)
{
	struct pg *pg = NULL;
	struct pg_prune result = {0};
	int r = pg_open(values->store, &pg, reterr);
	if (r == 0)
		r = pg_prune(pg, values->older_ns, values->dry_run, &result, reterr);
	if (r == 0 || result.tables > 0)
		add_result(&result, values->dry_run, out);
	pg_close(pg);
	return r;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct wattle_error error = {0};
	int status, first;
	void *config;
	if (!cli_parse(command, argc, argv, &values, &first, &config, EXIT_USAGE, &status))
		return status;
	if (first < argc)
		return cli_usage(command, EXIT_USAGE, "unexpected argument '%s'", argv[first]);
	if (values.store == NULL || values.older_ns == 0)
		return cli_usage(command, EXIT_USAGE, "give both --store URL and --older DUR");
	if (pg_check_url(values.store, &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	struct buf out = cli_buf();
	int r = prune(&values, &out, &error);
	status = out.size > 0 ? cli_write(&out, "-") : EXIT_DONE;
	buf_finish(&out);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : status;
}

const struct command command_prune = {
	.name = "prune",
	.usage = "--store URL --older DUR [--dry-run]",
	.summary = "drop old days, and the runs that ended before them, from a store",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
