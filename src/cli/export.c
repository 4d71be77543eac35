/* wattle export: a run in another layout. */
#include "cli/command.h"

#include "base/util.h"
#include "report/folded.h"
#include "store/export.h"
#include "store/export_out.h"
#include "store/run.h"

#include <errno.h>
#include <stddef.h>

struct values {
	const char *format, *output, *weight;
	bool overwrite;
};

static const struct option options[] = {
	{"format", 0, "FORMAT",
		"csv: a row a sample; jsonl: an object a record;\ngpu_tracker: its tracking file, .csv or .sqlite;\n"
		"folded: stacks of code blocks, for flame graphs",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "csv|jsonl|gpu_tracker|folded"},
	{"weight", 0, "energy|time", "of folded stacks: joules, or seconds (default energy)", OPTION_CHOICE,
		.offset = offsetof(struct values, weight), .choices = "energy|time"},
	{"output", 'o', "PATH", "write there; - is standard output", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
	{"overwrite", 0, NULL, "replace a file that is there already", OPTION_FLAG,
		.offset = offsetof(struct values, overwrite)},
};

static void pass_on(void *data)
{
	export_out_more(data);
}

static int write_folded(const struct findings *findings, const struct values *values, const char *path,
	struct wattle_error *reterr)
{
	enum folded_weight weight = values->weight != NULL && strcmp(values->weight, "time") == 0 ? FOLDED_TIME
												  : FOLDED_ENERGY;
	struct export_out out;
	if (findings->n_blocks == 0)
		return error_set(reterr, -ENODATA, "%s has no code blocks", path);
	if (weight == FOLDED_ENERGY && isnan(findings->outside_j))
		return error_set(reterr, -ENODATA, "%s has no energy; --weight time writes seconds", path);
	int r = export_out_open(&out, values->output, values->overwrite, reterr);
	if (r == 0) {
		folded_text(findings, weight, &out.text, pass_on, &out);
		return export_out_close(&out, values->output, reterr);
	}
	out.failed = r; // nothing gets its name
	export_out_close(&out, values->output, NULL);
	return r;
}

static int export_folded(const struct run *run, const struct values *values, const char *path,
	struct wattle_error *reterr)
{
	struct findings findings;
	if (findings_make(run, &findings) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	int r = write_folded(&findings, values, path, reterr);
	findings_finish(&findings);
	return r;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "more than one run file given");
	if (values.format == NULL || values.output == NULL)
		return cli_usage(command, EXIT_USAGE, values.format == NULL ? "--format is missing" : "-o is missing");
	bool folded = strcmp(values.format, "folded") == 0;
	if (values.weight != NULL && !folded)
		return cli_usage(command, EXIT_USAGE, "--weight is for --format folded");
	struct wattle_error error = {0};
	struct run loaded;
	if (run_load(words.items[0], &loaded, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int r = folded ? export_folded(&loaded, &values, words.items[0], &error)
		       : export_run(&loaded, values.format, values.output, values.overwrite, &error);
	run_finish(&loaded);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

const struct command command_export = {
	.name = "export",
	.usage = "RUN --format csv|jsonl|gpu_tracker|folded -o PATH",
	.summary = "a run in another layout",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
