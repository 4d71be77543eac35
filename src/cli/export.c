/* wattle export: writes a run in another format. */
#include "cli/command.h"

#include "base/util.h"
#include "task/task.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct values {
	const char *format, *output, *weight;
	bool overwrite;
	int64_t every_ns;
};

static const struct option options[] = {
	{"format", 0, "FORMAT",
		"csv: one row per sample; jsonl: one object per record;\ngpu_tracker: its tracking file, "
		".csv or .sqlite;\naipowermeter: its folder of files;\n"
		"folded: stacks of code blocks, for flame graphs;\n"
		"perfetto: a trace for ui.perfetto.dev;\n"
		"openmetrics: samples with timestamps, for Prometheus",
		OPTION_CHOICE, .offset = offsetof(struct values, format),
		.choices = "csv|jsonl|gpu_tracker|aipowermeter|folded|perfetto|openmetrics"},
	{"weight", 0, "energy|time", "weight of folded stacks: joules or seconds (default energy)", OPTION_CHOICE,
		.offset = offsetof(struct values, weight), .choices = "energy|time"},
	{"every", 0, "DUR", "with openmetrics: minimum time between samples of a series\n(default: all samples)",
		OPTION_DURATION, .offset = offsetof(struct values, every_ns), .least = 1e6, .most = 3.6e12,
		.range = "a duration from 1ms to 1h, such as 1s"},
	{"output", 'o', "PATH", "output file; - is standard output", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
	{"overwrite", 0, NULL, "replace an existing file", OPTION_FLAG, .offset = offsetof(struct values, overwrite)},
};

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "more than one run file given");
	if (values.format == NULL || values.output == NULL)
		return cli_usage(command, EXIT_USAGE, values.format == NULL ? "--format is missing" : "-o is missing");
	bool folded = strcmp(values.format, "folded") == 0;
	if (values.weight != NULL && !folded)
		return cli_usage(command, EXIT_USAGE, "--weight is for --format folded");
	if (values.every_ns != 0 && strcmp(values.format, "openmetrics") != 0)
		return cli_usage(command, EXIT_USAGE, "--every is for --format openmetrics");
	if (strcmp(values.format, "perfetto") == 0 && strcmp(values.output, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_usage(command, EXIT_USAGE,
			"--format perfetto writes binary data, which a terminal can't show: give -o FILE");
	struct wattle_error error = {0};
	struct export_choice choice = {values.format, values.weight, values.output, values.overwrite, values.every_ns};
	int r = export_file(words.items[0], &choice, &error);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

const struct command command_export = {
	.name = "export",
	.usage = "RUN --format csv|jsonl|gpu_tracker|aipowermeter|folded|perfetto|openmetrics -o PATH",
	.summary = "convert a run to another format",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
