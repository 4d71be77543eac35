/* wattle blocks: resource use of each code block of a run, of span files, or of gpu_tracker's files. */
#include "cli/command.h"

#include "analysis/findings.h"
#include "base/util.h"
#include "report/documents.h"
#include "report/format_helpers.h"
#include "span/reader/reader.h"
#include "store/output_file.h"
#include "store/sub_tracking.h"
#include "task/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct values {
	const char *format, *output, *tracking_file, *sub_tracking_file;
	struct option_list span_files;
};

static const struct option options[] = {
	{"format", 0, "text|json", "output format (default: json if FILE ends in .json, else text)", OPTION_CHOICE,
		.offset = offsetof(struct values, format), .choices = "text|json"},
	{"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
	{"tracking-file", 0, "F", "read gpu_tracker's tracking file (.csv or .sqlite) instead\nof a run", OPTION_TEXT,
		.offset = offsetof(struct values, tracking_file)},
	{"sub-tracking-file", 0, "F",
		"gpu_tracker's sub-tracking file (.csv or .sqlite) with the\nstarts and stops of code "
		"blocks; with RUN: evaluate these\nblocks in that run; alone: compute times only",
		OPTION_TEXT, .offset = offsetof(struct values, sub_tracking_file)},
	{"spans", 0, "FILE", "with RUN: a span file that the program wrote; repeatable", OPTION_LIST,
		.offset = offsetof(struct values, span_files)},
};

static bool wants_json(const struct values *values)
{
	return strcmp(values->format, "json") == 0;
}

/* A run */

static void warn_of_none(const char *path, size_t n)
{
	char text[512];
	snprintf(text, sizeof(text), "%.400s: no span in it began during the run", path);
	if (n == 0)
		cli_warn(text);
}

// Joins span files that the program wrote.
static int join(struct run *run, const struct values *values, struct wattle_error *error)
{
	size_t n = 1;
	int r = 0;
	if (values->sub_tracking_file != NULL) {
		r = run_join_sub_tracking(run, values->sub_tracking_file, &n, error);
		if (r == 0)
			warn_of_none(values->sub_tracking_file, n);
	}
	for (size_t i = 0; r == 0 && i < values->span_files.n; i++) {
		r = run_join_span_file(run, values->span_files.items[i], &n, error);
		if (r == 0)
			warn_of_none(values->span_files.items[i], n);
	}
	return r;
}

static int write_blocks(const struct values *values, const struct findings *findings)
{
	struct buf out = cli_buf();
	if (wants_json(values))
		blocks_document(findings, &out);
	else
		blocks_text(findings, &out, cli_use_colour(values->output));
	return cli_finish(&out, values->output);
}

static int blocks_of_run(const struct values *values, const char *path)
{
	struct wattle_error error = {0};
	struct run run;
	int r = load_run(path, &run, &error);
	if (r == -EINVAL && !span_file_probe(path) && file_type_check_run(path, NULL) == -EINVAL)
		error_set(&error, r,
			"%s is neither a run file nor a span file; for gpu_tracker's files use "
			"--tracking-file and --sub-tracking-file",
			path);
	if (r < 0)
		return cli_fail(EXIT_FAILED, &error);
	struct findings findings;
	r = join(&run, values, &error);
	if (r == 0 && (r = findings_make(&run, &findings)) < 0)
		error_set(&error, r, "%s: out of memory", path);
	int status = EXIT_FAILED;
	if (r == 0) {
		status = write_blocks(values, &findings);
		findings_finish(&findings);
	} else {
		cli_fail(status, &error);
	}
	run_finish(&run);
	return status;
}

/* gpu_tracker's files */

static int write_findings(const struct values *values, const struct tracking_findings *findings)
{
	struct buf out = cli_buf();
	if (wants_json(values))
		tracking_blocks_json(findings, &out);
	else
		tracking_blocks_text(findings, &out, cli_use_colour(values->output));
	return cli_finish(&out, values->output);
}

static int blocks_of_tracking(const struct values *values)
{
	struct wattle_error error = {0};
	struct arena *arena = arena_new();
	struct tracking_findings findings;
	int r = arena != NULL
		? tracking_files_blocks(values->tracking_file, values->sub_tracking_file, arena, &findings, &error)
		: error_set(&error, -ENOMEM, "out of memory");
	int status = r == 0 ? write_findings(values, &findings) : cli_fail(EXIT_FAILED, &error);
	arena_free(arena);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	values.format = cli_format(values.format, values.output, "json");
	bool alone = values.tracking_file != NULL || (values.sub_tracking_file != NULL && words.n == 0);
	if (values.tracking_file != NULL && words.n > 0)
		return cli_usage(command, EXIT_USAGE, "give either a run or gpu_tracker's files");
	if (values.tracking_file != NULL && values.sub_tracking_file == NULL)
		return cli_usage(command, EXIT_USAGE, "--tracking-file needs --sub-tracking-file");
	const char *const files[] = {values.tracking_file, values.sub_tracking_file};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i] != NULL && sub_tracking_ending(files[i]) == NULL)
			return cli_usage(command, EXIT_USAGE, "%s: %s does not end in .csv or .sqlite",
				i == 0 ? "--tracking-file" : "--sub-tracking-file", files[i]);
	if (alone && values.span_files.n > 0)
		return cli_usage(command, EXIT_USAGE, "--spans needs a run");
	if (!alone && words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "more than one run file given");
	const char *inputs[OPTION_LIST_MAX + 3] = {values.tracking_file, values.sub_tracking_file,
		words.n > 0 ? words.items[0] : NULL};
	memcpy(inputs + 3, values.span_files.items, values.span_files.n * sizeof(*inputs));
	if (!cli_check_not_input(values.output, inputs, 3 + values.span_files.n, &status))
		return status;
	return alone ? blocks_of_tracking(&values) : blocks_of_run(&values, words.items[0]);
}

const struct command command_blocks = {
	.name = "blocks",
	.usage = "RUN | --tracking-file F --sub-tracking-file F [--format text|json] [-o FILE]",
	.summary = "print statistics per code block",
	.details =
		"RUN is a run file, or a span file that a program wrote without a recorder (WATTLE_SPANS). "
		"For a span file energy is unknown.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
