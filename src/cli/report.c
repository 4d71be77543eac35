/* wattle report: the findings of a stored run. */
#include "cli/command.h"

#include "analysis/findings.h"
#include "base/util.h"
#include "report/report.h"
#include "store/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPORT_CEILING = 1 << 28 };

struct values {
	const char *format, *output;
};

static const struct option options[] = {
	{"format", 0, "text|json", "the form (default text)", OPTION_CHOICE, .offset = offsetof(struct values, format),
		.choices = "text|json"},
	{"output", 'o', "FILE", "write there (default standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

static bool wants_colour(const char *output)
{
	return output == NULL && isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
}

static int report(const struct values *values, const char *path)
{
	struct wattle_error error = {0};
	struct run run;
	if (run_load(path, &run, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int status = EXIT_FAILED;
	struct findings findings;
	if (findings_make(&run, &findings) == 0) {
		struct buf out;
		buf_init(&out, REPORT_CEILING);
		if (strcmp(values->format, "json") == 0)
			report_json(&findings, &out);
		else
			report_text(&findings, &out, wants_colour(values->output));
		status = cli_write(&out, values->output);
		buf_finish(&out);
		findings_finish(&findings);
	}
	run_finish(&run);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.format = "text"};
	struct option_list words;
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "more than one run file given");
	return report(&values, words.items[0]);
}

const struct command command_report = {
	.name = "report",
	.usage = "RUN [--format text|json] [-o FILE]",
	.summary = "the findings of a run",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
