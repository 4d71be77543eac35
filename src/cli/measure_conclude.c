/* After a recording: reports losses, reads the run back, and writes its findings to the requested outputs. */
#include "cli/measure.h"

#include "analysis/findings.h"
#include "base/util.h"
#include "report/report.h"
#include "report/table.h"
#include "store/job_runs.h"
#include "store/run.h"
#include "store/schema.h"
#include "store/sub_tracking.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Applies final values of the recorder that could not be stored.
static void apply_footer(struct run *run, const struct recorder_result *result)
{
	if (result->whole || run->n_segments == 0)
		return;
	struct run_segment *segment = &run->segments[run->n_segments - 1];
	const struct store_footer *footer = &result->footer;
	segment->end_ns = footer->end_ns;
	segment->pid = footer->pid;
	segment->exit_code = footer->exit_code;
	segment->cpu_method = footer->cpu_method;
	segment->complete = true; // the recorder finished normally; missing data is reported as lost samples
	size_t n;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++)
		memcpy((char *)segment + figures[i].in_segment, (const char *)footer + figures[i].in_footer,
			sizeof(int64_t));
}

static int write_json(const struct measure *measure, const struct findings *findings)
{
	const struct control *control = measure->options.control;
	if (measure->options.json == NULL && control == NULL)
		return EXIT_DONE;
	struct buf out = cli_buf();
	report_json(findings, &out);
	int status = measure->options.json != NULL ? cli_write(&out, measure->options.json) : EXIT_DONE;
	if (control != NULL && out.failed == 0) {
		measure_send_file(measure); // the file may have been saved at another path
		control_send(control, "report", 0, out.data, out.size);
	}
	buf_finish(&out);
	return status;
}

static void print_summary(const struct measure *measure, const struct findings *findings)
{
	if (measure->options.quiet)
		return;
	struct buf out = cli_buf();
	report_summary(findings, &out, isatty(STDERR_FILENO) && getenv("NO_COLOR") == NULL);
	buf_write_fd(&out, STDERR_FILENO);
	buf_finish(&out);
}

static void warn_of_loss(const struct measure *measure, const struct recorder_result *result)
{
	if (measure->options.disable_logs || (result->whole && result->footer.n_lost == 0))
		return;
	if (result->loss[0] != '\0')
		cli_warn(result->loss);
	if (result->footer.n_lost > 0 && measure->options.quiet) // otherwise the summary reports it
		fprintf(stderr, "wattle: warning: %lld of %lld samples were lost\n", (long long)result->footer.n_lost,
			(long long)(result->footer.n_samples + result->footer.n_lost));
}

static void import_spans(const struct measure *measure)
{
	struct wattle_error error = {0};
	const char *path = measure->options.sub_tracking_file;
	size_t n_spans;
	if (path != NULL && sub_tracking_import(measure->path, path, &n_spans, &error) < 0 &&
		!measure->options.disable_logs)
		cli_warn(error.text);
}

// If the run file is gone, for example with its folder, saves the data in the folder for temporary files.
static void rescue(struct measure *measure, const struct recorder_result *result)
{
	if (result->whole || measure->options.no_file || measure->sinks[0].ops->rescue == NULL)
		return;
	const char *top = getenv("TMPDIR");
	const char *slash = strrchr(measure->path, '/');
	char folder[sizeof(measure->path) - NAME_MAX - 1], path[sizeof(measure->path)];
	struct wattle_error error = {0};
	// In a new folder: in a folder that others can write to, any name may be a planted symbolic link.
	int length = snprintf(folder, sizeof(folder), "%s/wattle-saved-XXXXXX", top != NULL ? top : "/tmp");
	if (length < 0 || (size_t)length >= sizeof(folder) || mkdtemp(folder) == NULL) {
		cli_warn("can't save the run: can't create a folder in TMPDIR");
		return;
	}
	snprintf(path, sizeof(path), "%s/%.*s", folder, NAME_MAX, slash != NULL ? slash + 1 : measure->path);
	int r = measure->sinks[0].ops->rescue(measure->sinks[0].state, path, &error);
	if (r < 0)
		cli_warn(error.text);
	if (r <= 0) {
		rmdir(folder);
		return;
	}
	fprintf(stderr, "wattle: warning: the run was saved as %s instead\n", path);
	text_copy(measure->path, sizeof(measure->path), path);
}

// Computing the findings of a long run takes seconds, and memory for all its rows.
static bool wants_findings(const struct measure *measure)
{
	const struct measure_options *options = &measure->options;
	return !options->quiet || options->json != NULL || options->control != NULL;
}

// After a recording that was ended by a signal, millions of spans are not loaded; the file contains them.
static int load(const char *path, const struct recorder_result *result, struct run *ret_run,
	struct wattle_error *reterr)
{
	if (result->spans_to_leave == 0)
		return run_load(path, ret_run, reterr);
	char text[PATH_MAX + 200];
	snprintf(text, sizeof(text),
		"ended by a signal: this summary excludes %lld spans; `wattle report %s` shows them",
		(long long)result->spans_to_leave, path);
	cli_warn(text);
	return run_load_extent(path, &(struct run_extent){.no_spans = true}, ret_run, reterr);
}

static int print_findings(struct measure *measure, const struct recorder_result *result)
{
	if (result->whole && !wants_findings(measure))
		return EXIT_DONE;
	struct wattle_error error = {0};
	struct run run;
	struct findings findings;
	if (load(measure->path, result, &run, &error) < 0)
		return control_refuse(measure->options.control, EXIT_FAILED, &error);
	apply_footer(&run, result);
	int status, r = findings_make(&run, &findings);
	if (r == 0) {
		print_summary(measure, &findings);
		status = write_json(measure, &findings);
		findings_finish(&findings);
	} else {
		error_set(&error, r, "%s: can't create a report from it: %s", measure->path, strerror(-r));
		status = control_refuse(measure->options.control, EXIT_FAILED, &error);
	}
	run_finish(&run);
	return status;
}

// Where the run is, at most 80 columns: the last line of the summary.
static void print_last_line(const char *text)
{
	struct buf out = cli_buf();
	buf_str(&out, "  ");
	text_fit_middle(&out, text, TEXT_WIDTH - 2);
	buf_char(&out, '\n');
	buf_write_fd(&out, STDERR_FILENO);
	buf_finish(&out);
}

int measure_conclude(struct measure *measure, const struct recorder_result *result)
{
	progress_free(measure->progress);
	measure->progress = NULL;
	warn_of_loss(measure, result);
	rescue(measure, result);
	measure_close_stores(measure, false);
	import_spans(measure);
	measure_store_over(measure);
	int status = print_findings(measure, result);
	char line[sizeof(measure->path) + 512];
	measure_store_conclude(measure, result->whole, line, sizeof(line));
	if (!measure->options.quiet && (status == EXIT_DONE || measure->uploader != NULL))
		print_last_line(line);
	return status;
}
