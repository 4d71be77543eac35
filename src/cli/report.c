/* wattle report: the findings of a stored run. */
#include "cli/command.h"

#include "analysis/chart/chart.h"
#include "analysis/findings.h"
#include "base/util.h"
#include "report/page/page.h"
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
	{"format", 0, "text|json|html", "the form (default text); html is a page with charts that needs nothing else",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "text|json|html"},
	{"output", 'o', "FILE", "write there (default standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

static bool wants_colour(const char *output)
{
	return output == NULL && isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
}

static void as_text(const struct values *values, const struct findings *findings, struct buf *out)
{
	report_text(findings, out, wants_colour(values->output));
}

static void as_json(const struct values *values, const struct findings *findings, struct buf *out)
{
	report_json(findings, out);
}

static void as_page(const struct values *values, const struct findings *findings, struct buf *out)
{
	struct charts charts;
	out->failed = charts_make(findings, NULL, &charts);
	if (out->failed < 0)
		return;
	page_report(&charts, out);
	charts_finish(&charts);
}

static const struct form {
	const char *name;
	void (*make)(const struct values *values, const struct findings *findings, struct buf *out);
	bool is_for_files; // nobody reads it on a terminal
} forms[] = {
	{"text", as_text, false},
	{"json", as_json, false},
	{"html", as_page, true},
};

static const struct form *form_of(const char *name)
{
	size_t i = 0;
	while (i + 1 < ARRAY_SIZE(forms) && strcmp(forms[i].name, name) != 0)
		i++;
	return &forms[i];
}

static int report(const struct values *values, const struct form *form, const char *path)
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
		form->make(values, &findings, &out);
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
	const struct form *form = form_of(values.format);
	if (form->is_for_files && values.output == NULL && isatty(STDOUT_FILENO))
		return cli_usage(command, EXIT_USAGE, "--format html writes a page, which a terminal can't show: give -o FILE");
	return report(&values, form, words.items[0]);
}

const struct command command_report = {
	.name = "report",
	.usage = "RUN [--format text|json|html] [-o FILE]",
	.summary = "the findings of a run",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
