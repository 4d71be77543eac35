/* wattle report: the findings of a stored run. */
#include "cli/command.h"
#include "cli/report_pictures.h"

#include "analysis/chart/chart.h"
#include "analysis/findings.h"
#include "base/util.h"
#include "report/page/page.h"
#include "report/report.h"
#include "store/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPORT_CEILING = 1 << 28 };

struct values {
	const char *format, *output;
};

static const struct option options[] = {
	{"format", 0, "text|json|html|svg",
		"the form (default text); html is a page with charts that needs nothing else, svg are pictures for papers",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "text|json|html|svg"},
	{"output", 'o', "FILE", "write there; for svg a folder, which is made (default standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

static bool wants_colour(const char *output)
{
	return output == NULL && isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
}

static bool is_stdout(const char *output)
{
	return output == NULL || strcmp(output, "-") == 0;
}

/* ---- forms: each makes findings into a file and returns an exit status ---- */

static int write_text(const struct findings *findings, const char *output)
{
	struct buf out;
	buf_init(&out, REPORT_CEILING);
	report_text(findings, &out, wants_colour(output));
	int status = cli_write(&out, output);
	buf_finish(&out);
	return status;
}

static int write_json(const struct findings *findings, const char *output)
{
	struct buf out;
	buf_init(&out, REPORT_CEILING);
	report_json(findings, &out);
	int status = cli_write(&out, output);
	buf_finish(&out);
	return status;
}

static int write_charts(const struct findings *findings, const char *output,
	int (*write)(const struct charts *charts, const char *output))
{
	struct charts charts;
	if (charts_make(findings, NULL, &charts) < 0) {
		struct wattle_error error = {0};
		error_set(&error, -ENOMEM, "out of memory");
		return cli_fail(EXIT_FAILED, &error);
	}
	int status = write(&charts, output);
	charts_finish(&charts);
	return status;
}

static int page(const struct charts *charts, const char *output)
{
	struct buf out;
	buf_init(&out, REPORT_CEILING);
	page_report(charts, &out);
	int status = cli_write(&out, output);
	buf_finish(&out);
	return status;
}

static int write_page(const struct findings *findings, const char *output)
{
	return write_charts(findings, output, page);
}

static int write_pictures(const struct findings *findings, const char *output)
{
	return write_charts(findings, output, report_pictures);
}

static const struct form {
	const char *name;
	int (*write)(const struct findings *findings, const char *output);
} forms[] = {{"text", write_text}, {"json", write_json}, {"html", write_page}, {"svg", write_pictures}};

static const struct form *form_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return &forms[0]; // the option's own table has no other
}

// A page on a terminal, or pictures nowhere, are a mistake; better told before the work than after.
static const char *wrong_output(const struct form *form, const char *output)
{
	if (form->write == write_page && is_stdout(output) && isatty(STDOUT_FILENO))
		return "--format html writes a page, which a terminal can't show: give -o FILE";
	if (form->write == write_pictures && is_stdout(output))
		return "--format svg writes several files: give -o DIR, a folder";
	return NULL;
}

static int report(const struct form *form, const char *path, const char *output)
{
	struct wattle_error error = {0};
	struct run run;
	if (run_load(path, &run, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int status = EXIT_FAILED;
	struct findings findings;
	if (findings_make(&run, &findings) == 0) {
		status = form->write(&findings, output);
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
	const char *wrong = wrong_output(form, values.output);
	if (wrong != NULL)
		return cli_usage(command, EXIT_USAGE, "%s", wrong);
	return report(form, words.items[0], values.output);
}

const struct command command_report = {
	.name = "report",
	.usage = "RUN [--format text|json|html|svg] [-o FILE]",
	.summary = "the findings of a run",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
