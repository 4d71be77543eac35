/* wattle merge: merges many files of spans. */
#include "cli/command.h"

#include "store/sub_tracking.h"

static int run(const struct command *command, int argc, char **argv)
{
	int first, status;
	void *config;
	if (!cli_parse(command, argc, argv, NULL, &first, &config, EXIT_USAGE, &status))
		return status;
	const char *const *words = (const char *const *)argv + first;
	if (argc - first < 2)
		return cli_usage(command, EXIT_USAGE, "a new file and at least one input are needed");
	struct wattle_error error = {0};
	int r = merge_files(words[0], words + 1, (size_t)(argc - first - 1), &error);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

const struct command command_merge = {
	.name = "merge",
	.usage = "OUT IN…",
	.summary = "merge span files or sub-tracking files into one file",
	.details =
		"OUT must not exist. For sub-tracking files OUT has the same suffix, .csv or .sqlite. Span "
		"files (WATTLE_SPANS) are merged into a span file, or into a sub-tracking file if OUT ends "
		"in .csv or .sqlite. If IN is one folder, all files in it are merged.",
	.run = run,
};
