/* wattle push: sends a run file to PostgreSQL. */
#include "cli/command.h"

#include "base/util.h"
#include "store/postgres/pq.h"
#include "task/task.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct values {
	int64_t wait_ns;
	bool quiet;
};

static const struct option options[] = {
	{"wait", 0, "DUR", "maximum wait for an unreachable server (default 10s)", OPTION_DURATION,
		.offset = offsetof(struct values, wait_ns), .least = 0, .most = 6.048e14,
		.range = "a duration, such as 30s or 1h"},
	{"quiet", 'q', NULL, "print errors only", OPTION_FLAG, .offset = offsetof(struct values, quiet)},
};

static void print_result(const char *path, const struct push_result *result)
{
	if (result->sent.rows == 0)
		printf("%s: run %s is already complete in the store\n", path, result->run_id);
	else
		printf("%s: %" PRId64 " rows of run %s sent\n", path, result->sent.rows, result->run_id);
	if (result->is_live)
		printf("%s: the run is in progress; push it again after its end\n", path);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.wait_ns = 10 * NS_PER_S};
	struct option_list words;
	struct wattle_error error = {0};
	struct push_result result;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n < 2)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "the URL of the store is missing");
	if (words.n > 2)
		return cli_usage(command, EXIT_USAGE, "give one run file and one URL");
	if (pg_check_url(words.items[1], &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	if (push_file(words.items[0], words.items[1], values.wait_ns, &result, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	if (!values.quiet)
		print_result(words.items[0], &result);
	return EXIT_DONE;
}

const struct command command_push = {
	.name = "push",
	.usage = "[OPTIONS] RUN URL",
	.summary = "send a run file to PostgreSQL; safe to repeat",
	.details =
		"URL is a libpq URL: postgresql://user@host/database. Passwords come from ~/.pgpass, a "
		"service file or\nPGPASSWORD. Each row is stored exactly once, even if a push is repeated or "
		"interrupted. A run in progress can\nbe pushed too; the next push sends the rest. A server "
		"that does not respond for a minute during a batch counts\nas unreachable. A wrong password, "
		"role or database is reported at once.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
