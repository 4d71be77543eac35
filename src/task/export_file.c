#include "task/task.h"

#include "base/util.h"
#include "report/openmetrics.h"
#include "report/report.h"
#include "report/trace/trace.h"
#include "store/export.h"
#include "store/run.h"

#include <errno.h>
#include <sys/stat.h>

static void pass_on(void *data)
{
	export_out_more(data);
}

/* ---- formats based on findings ---- */

static bool by_time(const struct export_choice *choice)
{
	return choice->weight != NULL && strcmp(choice->weight, "time") == 0;
}

static int check_folded(const struct findings *findings, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr)
{
	if (findings->n_blocks == 0)
		return error_set(reterr, -ENODATA, "%s has no code blocks", run_path);
	if (!by_time(choice) && isnan(findings->outside_j))
		return error_set(reterr, -ENODATA, "%s has no energy; --weight time writes seconds", run_path);
	return 0;
}

static int write_folded(const struct findings *findings, const struct export_choice *choice, struct export_out *out)
{
	folded_text(findings, by_time(choice) ? FOLDED_TIME : FOLDED_ENERGY, &out->text, pass_on, out);
	return 0;
}

static int write_perfetto(const struct findings *findings, const struct export_choice *choice, struct export_out *out)
{
	return trace_perfetto(findings, &out->text, pass_on, out);
}

static int check_openmetrics(const struct findings *findings, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr)
{
	if (openmetrics_run_can(findings->run))
		return 0;
	return error_set(reterr, -ENODATA, "%s has no samples whose time of day is known", run_path);
}

static int write_openmetrics(const struct findings *findings, const struct export_choice *choice,
	struct export_out *out)
{
	return openmetrics_run(findings, choice->every_ns, &out->text, pass_on, out);
}

static const struct findings_format {
	const char *name;
	// Checks that the run has something to write, before a file is created; NULL: always.
	int (*check)(const struct findings *findings, const struct export_choice *choice, const char *run_path,
		struct wattle_error *reterr);
	int (*write)(const struct findings *findings, const struct export_choice *choice,
		struct export_out *out); // -ENOMEM
} findings_formats[] = {
	{"folded", check_folded, write_folded},
	{"perfetto", NULL, write_perfetto},
	{"openmetrics", check_openmetrics, write_openmetrics},
};

static const struct findings_format *find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(findings_formats); i++)
		if (strcmp(findings_formats[i].name, name) == 0)
			return &findings_formats[i];
	return NULL;
}

static int write_file(const struct findings_format *format, const struct findings *findings,
	const struct export_choice *choice, struct wattle_error *reterr)
{
	struct export_out out;
	int r = export_out_open(&out, choice->path, choice->overwrite, reterr);
	if (r == 0)
		r = format->write(findings, choice, &out);
	if (r == 0)
		return export_out_close(&out, choice->path, reterr);
	out.failed = r; // the file is not renamed into place
	export_out_close(&out, choice->path, NULL);
	return r == -ENOMEM ? error_set(reterr, r, "%s: out of memory", choice->path) : r;
}

static int export_findings(const struct findings_format *format, const struct run *run,
	const struct export_choice *choice, const char *run_path, struct wattle_error *reterr)
{
	struct findings findings;
	if (findings_make(run, &findings) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", run_path);
	int r = format->check != NULL ? format->check(&findings, choice, run_path, reterr) : 0;
	if (r == 0)
		r = write_file(format, &findings, choice, reterr);
	findings_finish(&findings);
	return r;
}

/* ---- all formats ---- */

static int check_weight(const struct export_choice *choice, bool is_folded, struct wattle_error *reterr)
{
	if (choice->weight == NULL)
		return 0;
	if (!is_folded)
		return error_set(reterr, -EINVAL, "a weight needs format folded");
	if (strcmp(choice->weight, "energy") != 0 && strcmp(choice->weight, "time") != 0)
		return error_set(reterr, -EINVAL, "unknown weight '%s'; valid are: energy, time", choice->weight);
	return 0;
}

// The run file itself is never replaced, not even with --overwrite.
static int check_not_run(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr)
{
	struct stat run, out;
	bool is_run = stat(run_path, &run) == 0 && stat(choice->path, &out) == 0 && run.st_dev == out.st_dev &&
		run.st_ino == out.st_ino;
	return is_run ? error_set(reterr, -EEXIST, "%s is the run file itself: choose another name", choice->path) : 0;
}

int export_file(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr)
{
	const struct findings_format *format = find_format(choice->format);
	struct run run;
	int r = check_weight(choice, strcmp(choice->format, "folded") == 0, reterr);
	if (r == 0)
		r = check_not_run(run_path, choice, reterr);
	if (r == 0)
		r = run_load(run_path, &run, reterr);
	if (r < 0)
		return r;
	if (format != NULL)
		r = export_findings(format, &run, choice, run_path, reterr);
	else if (strcmp(choice->format, "aipowermeter") == 0)
		r = export_aipowermeter(&run, choice, run_path, reterr);
	else
		r = export_run(&run, choice->format, choice->path, choice->overwrite, reterr);
	run_finish(&run);
	return r;
}
