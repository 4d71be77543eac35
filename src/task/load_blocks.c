#include "task/load_blocks.h"

#include "base/util.h"
#include "report/blocks_report.h"
#include "store/probe.h"
#include "store/span_file_load.h"
#include "task/load_job.h"

#include <errno.h>
#include <string.h>

enum { DOCUMENT_CEILING = 1 << 30 };

int load_run(const char *path, struct run *ret_run, struct wattle_error *reterr)
{
	return span_file_probe(path) ? span_file_load(path, ret_run, reterr) : run_load(path, ret_run, reterr);
}

// Through the same document that wattle blocks saves, so that a run and what was saved of it compare as equals.
int load_blocks_of(const struct findings *findings, const char *path, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	struct buf document;
	buf_init(&document, DOCUMENT_CEILING);
	blocks_document(findings, &document);
	int r = document.failed;
	if (r < 0)
		error_set(reterr, r, "%s: %s", path, strerror(-r));
	else
		r = saved_blocks_parse(document.data, document.size, path, statistic, arena, ret_saved, reterr);
	buf_finish(&document);
	return r;
}

int load_findings(const char *path, struct run *ret_run, struct findings *ret_findings, struct wattle_error *reterr)
{
	struct run run;
	int r = load_run(path, &run, reterr);
	if (r < 0)
		return r;
	*ret_run = run; // at its place first: the findings point to it
	r = findings_make(ret_run, ret_findings);
	if (r < 0) {
		run_finish(ret_run);
		return error_set(reterr, r, "%s: %s", path, strerror(-r));
	}
	return 0;
}

// All ranks of a job as one run.
static int of_job(const char *folder, const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	const struct job_choice choice = {.job_id = job_id, .remedy = "put those of each in a folder of its own"};
	struct loaded_job job;
	int r = load_job(folder, url, &choice, NULL, &job, reterr);
	if (r < 0)
		return r;
	r = load_blocks_of(&job.job.total, folder != NULL ? folder : job_id, statistic, arena, ret_saved, reterr);
	load_job_finish(&job);
	return r;
}

int load_blocks_stored(const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	return of_job(NULL, url, job_id, statistic, arena, ret_saved, reterr);
}

int load_blocks(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr)
{
	if (load_is_folder(path))
		return of_job(path, NULL, NULL, statistic, arena, ret_saved, reterr);
	if (!probe_measurements(path))
		return saved_blocks_load(path, statistic, arena, ret_saved, reterr);
	struct run run;
	struct findings findings;
	int r = load_findings(path, &run, &findings, reterr);
	if (r < 0)
		return r;
	r = load_blocks_of(&findings, path, statistic, arena, ret_saved, reterr);
	findings_finish(&findings);
	run_finish(&run);
	return r;
}
