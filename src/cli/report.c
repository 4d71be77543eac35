/* wattle report: the findings of a stored run, or of a job with many runs. */
#include "cli/command.h"

#include "analysis/chart/chart.h"
#include "analysis/findings.h"
#include "base/suggest.h"
#include "base/util.h"
#include "report/page/page.h"
#include "report/picture/picture.h"
#include "report/report.h"
#include "store/postgres/load.h"
#include "store/run.h"
#include "task/task.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct values {
	const char *format, *output;
	const char *url, *run_id, *job_id, *step;
	bool all_samples, all;
	struct option_list waiting, sections;
};

#define LIST "list" // as a section: prints the names
static const char section_names[] = LIST
#define SECTION(id, name, ...) "|" name
#include "report/section/sections.def"
	;

static const struct option options[] = {
	{"format", 0, "text|json|html|svg|line",
		"output format (default: by the suffix of FILE, .html or .json, else text): html is a self-contained page with charts, svg are pictures for "
		"papers, line is energy and time on one line",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "text|json|html|svg|line"},
	{"output", 'o', "FILE", "output file; for svg a folder, which is created (default standard output)",
		OPTION_TEXT, .offset = offsetof(struct values, output)},
	{"section", 0, "NAME", "text: print only this section, in full (repeatable): list (prints the names)"
#define SECTION(id, name, ...) ", " name
#include "report/section/sections.def"
		,
		OPTION_LIST, .offset = offsetof(struct values, sections), .choices = section_names},
	{"all", 0, NULL, "text: print all sections, with more rows", OPTION_FLAG,
		.offset = offsetof(struct values, all)},
	{"store", 0, "URL", "read from PostgreSQL instead of a file: postgresql://HOST/DATABASE", OPTION_TEXT,
		.offset = offsetof(struct values, url)},
	{"run", 0, "ID", "run in the store, by the start of its id", OPTION_TEXT,
		.offset = offsetof(struct values, run_id)},
	{"job", 0, "ID", "job id in the folder or the store; none: the job without an id", OPTION_TEXT,
		.offset = offsetof(struct values, job_id)},
	{"step", 0, "STEP", "only this step of the job (Slurm: 0, 1 …)", OPTION_TEXT,
		.offset = offsetof(struct values, step)},
	{"waiting", 0, "PATTERN",
		"code blocks of the job in which a rank waits for others: a name, or a pattern with * and ? (repeatable; "
		"default: barriers and collectives of MPI and other libraries)",
		OPTION_LIST, .offset = offsetof(struct values, waiting)},
	{"all-samples", 0, NULL, "read all samples of the job, however many", OPTION_FLAG,
		.offset = offsetof(struct values, all_samples)},
};

static bool is_stdout(const char *output)
{
	return output == NULL || strcmp(output, "-") == 0;
}

static bool is_format(const struct values *values, const char *name)
{
	return strcmp(values->format, name) == 0;
}

// An HTML page on a terminal, or pictures without a destination, is a mistake; reported before the work starts.
static const char *wrong_output(const struct values *values)
{
	if (is_format(values, "html") && is_stdout(values->output) && isatty(STDOUT_FILENO))
		return "--format html can't be shown in a terminal: give -o FILE";
	if (is_format(values, "svg") && is_stdout(values->output))
		return "--format svg writes several files: give -o DIR, a folder";
	return NULL;
}

/* ---- pictures ---- */

static int fail_pictures(const char *path, int error)
{
	fprintf(stderr, "wattle: can't write pictures into %s: %s\n", path, strerror(error));
	return EXIT_FAILED;
}

static int make_folder(const char *path)
{
	struct stat status;
	if (mkdir(path, 0777) == 0)
		return EXIT_DONE;
	int error = errno;
	if (error != EEXIST)
		return fail_pictures(path, error);
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? EXIT_DONE : fail_pictures(path, ENOTDIR);
}

static int write_picture(const struct charts *charts, enum picture_kind kind, const char *folder)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s.svg", folder, picture_name(kind));
	if (length < 0 || (size_t)length >= sizeof(path))
		return fail_pictures(folder, ENAMETOOLONG);
	struct buf out = cli_buf();
	picture_svg(charts, kind, &(struct picture_style){.is_file = true}, &out);
	int status = out.failed == 0 ? cli_write(&out, path) : fail_pictures(path, -out.failed);
	buf_finish(&out);
	return status;
}

// Writes all non-empty charts to a folder, which is created.
static int report_pictures(const struct charts *charts, const char *folder)
{
	size_t n = 0;
	if (make_folder(folder) != EXIT_DONE)
		return EXIT_FAILED;
	for (enum picture_kind kind = 0; kind < PICTURE_KINDS; kind++) {
		if (!picture_has(charts, kind))
			continue;
		if (write_picture(charts, kind, folder) != EXIT_DONE)
			return EXIT_FAILED;
		fprintf(stderr, "%s%s.svg", n++ > 0 ? ", " : "wattle: pictures: ", picture_name(kind));
	}
	if (n > 0)
		fprintf(stderr, " in %s\n", folder);
	else
		fprintf(stderr, "wattle: no pictures: the run has too few samples\n");
	return EXIT_DONE;
}

/* ---- a run ---- */

static void write_text(const struct values *values, const struct findings *findings, const struct job_findings *job,
	struct buf *out)
{
	const struct section_choice choice = {values->all, values->sections.items, values->sections.n};
	report_text_sections(findings, job, &choice, out, cli_use_colour(values->output));
}

static int write_findings(const struct values *values, const struct findings *findings)
{
	struct buf out = cli_buf();
	if (is_format(values, "json"))
		report_json(findings, &out);
	else if (is_format(values, "line"))
		report_line(findings, &out);
	else
		write_text(values, findings, NULL, &out);
	return cli_finish(&out, values->output);
}

static int write_charts(const struct values *values, const struct findings *findings)
{
	struct charts charts;
	if (charts_make(findings, NULL, &charts) < 0)
		return cli_no_memory();
	int status;
	if (is_format(values, "svg")) {
		status = report_pictures(&charts, values->output);
	} else {
		struct buf out = cli_buf();
		page_report(&charts, &out);
		status = cli_finish(&out, values->output);
	}
	charts_finish(&charts);
	return status;
}

static int report_run(const struct values *values, const char *path)
{
	struct wattle_error error = {0};
	struct run run;
	struct findings findings;
	int r = values->url != NULL ? pg_run_load_from(values->url, values->run_id, &run, &error)
				    : run_load(path, &run, &error);
	if (r < 0)
		return cli_fail(EXIT_FAILED, &error);
	bool has_charts = is_format(values, "html") || is_format(values, "svg");
	bool is_made = (has_charts ? findings_make_for_charts : findings_make)(&run, &findings) == 0;
	int status = !is_made ? cli_no_memory()
		: has_charts  ? write_charts(values, &findings)
			      : write_findings(values, &findings);
	if (is_made)
		findings_finish(&findings);
	run_finish(&run);
	return status;
}

/* ---- a job ---- */

static int write_job(const struct values *values, const struct job_findings *job)
{
	struct buf out = cli_buf();
	if (is_format(values, "json"))
		job_report_json(job, &out);
	else if (is_format(values, "html"))
		page_job(job, &out);
	else if (is_format(values, "line"))
		job_report_line(job, &out);
	else
		write_text(values, NULL, job, &out);
	return cli_finish(&out, values->output);
}

// Warns of a pattern that no code block matches.
static void check_pattern(const char *pattern, const struct job_findings *job)
{
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32], text[512];
	suggest_begin(&suggest, pattern, strlen(pattern));
	for (size_t i = 0; i < job->total.n_blocks; i++) {
		const char *name = job->total.blocks[i].name;
		if (fnmatch(pattern, name, FNM_CASEFOLD) == 0)
			return;
		suggest_offer(&suggest, name, strlen(name));
	}
	snprintf(text, sizeof(text), "--waiting: no code block matches '%.300s'%s", pattern,
		suggest_text(&suggest, "", meant));
	cli_warn(text);
}

static int report_job(const struct values *values, const char *folder)
{
	const struct job_choice choice = {values->job_id, values->step, values->all_samples};
	const struct job_options how = {.waiting = values->waiting.n > 0 ? values->waiting.items : NULL,
		.step = values->step};
	struct wattle_error error = {0};
	struct loaded_job job;
	if (load_job(folder, values->url, &choice, &how, &job, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	for (size_t i = 0; i < values->waiting.n; i++)
		check_pattern(values->waiting.items[i], &job.job);
	int status = write_job(values, &job.job);
	load_job_finish(&job);
	return status;
}

/* ---- the command ---- */

static bool has_job_option(const struct values *values)
{
	return values->job_id != NULL || values->step != NULL || values->all_samples || values->waiting.n > 0;
}

// Returns why the options contradict each other; NULL: they do not. words: files and folders.
static const char *contradiction(const struct values *values, const struct option_list *words)
{
	bool from_store = values->url != NULL;
	if (from_store && words->n > 0)
		return "--store reads from PostgreSQL and takes no run file or folder";
	if (from_store && (values->run_id == NULL) == (values->job_id == NULL))
		return "--store needs --job ID or --run ID (`wattle list --store URL` names them)";
	if (!from_store && values->run_id != NULL)
		return "--run selects a run in a store: give --store URL";
	if (!from_store && words->n == 0)
		return "no run file given";
	if (!from_store && words->n > 1)
		return "more than one run file given; `wattle compare A B` compares runs; for a job, give the folder of its run files";
	bool is_job = from_store ? values->job_id != NULL : load_is_folder(words->items[0]);
	if (!is_job && has_job_option(values))
		return "--job, --step, --waiting and --all-samples apply to jobs: give a folder of run files, or --store URL --job ID";
	if (is_job && is_format(values, "svg"))
		return "--format svg does not support jobs: use --format html for charts";
	if ((values->all || values->sections.n > 0) && !is_format(values, "text"))
		return "--section and --all apply to text only: --format html and json contain everything";
	return wrong_output(values);
}

static bool lists_sections(const struct option_list *sections)
{
	for (size_t i = 0; i < sections->n; i++)
		if (strcmp(sections->items[i], LIST) == 0)
			return true;
	return false;
}

static int list_sections(void)
{
	static const char names[] =
#define SECTION(id, name, title, ...) name "\n"
#include "report/section/sections.def"
		;
	fputs(names, stdout);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.format = NULL};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (lists_sections(&values.sections))
		return list_sections();
	values.format = cli_format(values.format, values.output, "html|json");
	const char *wrong = contradiction(&values, &words);
	if (wrong != NULL)
		return cli_usage(command, EXIT_USAGE, "%s", wrong);
	const char *path = words.n > 0 ? words.items[0] : NULL;
	bool is_job = values.run_id == NULL && (values.url != NULL || load_is_folder(path));
	return is_job ? report_job(&values, path) : report_run(&values, path);
}

const struct command command_report = {
	.name = "report",
	.usage =
		"RUN | DIR [--job ID] | --store URL --job ID | --store URL --run ID [--section NAME | --all] [--format text|json|html|svg|line] [-o FILE]",
	.summary = "report on a run, or on a job with several ranks",
	.details =
		"By default the text has the main sections, about two screens; --all prints all sections.\n\n"
		"DIR is a folder with the run files of a job's ranks. The energy of each machine counts once, whichever rank read its "
		"sensors. For very many samples, a job's report reads about one per second; energies stay exact because they are "
		"differences of counters.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
