/* wattle store: creates, grants access to and inspects a PostgreSQL store; store_status.c has the status. */
#include "cli/command.h"

#include "base/util.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include <stdio.h>
#include <string.h>

/* ---- wattle store init ---- */

struct init_values {
	struct option_list writers, readers;
	bool print;
};

static const struct option init_options[] = {
	{"writer", 0, "ROLE", "role that may add runs but not read; created if missing (repeatable)", OPTION_LIST,
		.offset = offsetof(struct init_values, writers)},
	{"reader", 0, "ROLE", "role that may read all runs; created if missing (repeatable)", OPTION_LIST,
		.offset = offsetof(struct init_values, readers)},
	{"print", 0, NULL, "only print the SQL that creates the tables and functions", OPTION_FLAG,
		.offset = offsetof(struct init_values, print)},
};

static int print_sql(void)
{
	struct buf out = cli_buf();
	pg_tables_sql(&out);
	return cli_finish(&out, "-");
}

static int grant(struct pg *pg, enum pg_right right, const struct option_list *roles, struct wattle_error *reterr)
{
	static const char *const may[] =
		{[PG_WRITER] = "may add runs but not read", [PG_READER] = "may read all runs"};
	for (size_t i = 0; i < roles->n; i++) {
		bool made = false;
		int r = pg_store_grant(pg, right, roles->items[i], &made, reterr);
		if (r < 0)
			return r;
		printf("role %s %s%s\n", roles->items[i], may[right],
			made ? "; created without login: `GRANT` it to login roles" : "");
	}
	return 0;
}

static int init(const char *url, const struct init_values *values, struct wattle_error *reterr)
{
	struct pg *pg = NULL;
	struct pg_store store;
	bool changed = false, was_there = false;
	int r = pg_open(url, &pg, reterr);
	if (r == 0)
		r = pg_store_read_status(pg, &store, reterr);
	if (r == 0) {
		was_there = store.exists;
		r = pg_store_ensure(pg, &changed, reterr);
	}
	if (r == 0)
		r = pg_store_read_status(pg, &store, reterr);
	if (r == 0)
		printf("%s, schema %s: store version %lld, %s\n", pg_where(pg), store.schema,
			(long long)store.version,
			!changed            ? "up to date"
				: was_there ? "updated"
					    : "made");
	if (r == 0)
		r = grant(pg, PG_WRITER, &values->writers, reterr);
	if (r == 0)
		r = grant(pg, PG_READER, &values->readers, reterr);
	pg_close(pg);
	return r;
}

static int run_init(const struct command *command, int argc, char **argv)
{
	struct init_values values = {0};
	struct option_list words;
	struct wattle_error error = {0};
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (values.print && words.n == 0)
		return print_sql();
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "the URL of a database is missing" : "more than one URL given");
	if (pg_check_url(words.items[0], &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	return values.print                                 ? print_sql()
		: init(words.items[0], &values, &error) < 0 ? cli_fail(EXIT_FAILED, &error)
							    : EXIT_DONE;
}

const struct command command_store_init = {
	.name = "store init",
	.usage = "URL [--writer ROLE]… [--reader ROLE]…",
	.summary = "create or update a store in a database, and grant access to it",
	.details =
		"URL is a libpq URL: postgresql://user@host/database. Passwords come from ~/.pgpass, a "
		"service file or\nPGPASSWORD. The tables are created in the connection's current schema. "
		"Safe to repeat: existing rows are kept.",
	.options = init_options,
	.n_options = ARRAY_SIZE(init_options),
	.run = run_init,
};

/* ---- wattle store ---- */

static const struct command *const verbs[] = {&command_store_init, &command_store_status};

const struct command command_store = {
	.name = "store",
	.usage = "init|status URL …",
	.summary = "create, grant access to and inspect a PostgreSQL store",
	.parts = verbs,
	.n_parts = ARRAY_SIZE(verbs),
	.run = cli_run_part,
};
