/* wattle combine: merges many files of spans. */
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
	int r = combine_files(words[0], words + 1, (size_t)(argc - first - 1), &error);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

const struct command command_combine = {
	.name = "combine",
	.usage = "OUT IN…",
	.summary = "many span files or sub-tracking files into one",
	.details =
		"OUT must not exist. Sub-tracking files keep their ending, .csv or .sqlite; span files (WATTLE_SPANS) become a "
		"span file, or a sub-tracking file where OUT ends in .csv or .sqlite. One folder as IN means all in it.",
	.run = run,
};
