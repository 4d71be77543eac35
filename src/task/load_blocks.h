/* The code blocks of whatever file they are in. */
#pragma once

#include "analysis/findings.h"
#include "base/error.h"
#include "store/run.h"
#include "store/saved_blocks.h"

// A run file, or a span file as a run of spans only. As run_load.
int load_run(const char *path, struct run *ret_run, struct wattle_error *reterr);
// Both are to be finished, the findings first.
int load_findings(const char *path, struct run *ret_run, struct findings *ret_findings, struct wattle_error *reterr);
// One statistic of a run that is loaded; `path` is for messages.
int load_blocks_of(const struct findings *findings, const char *path, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr);
// One statistic of a run file, a span file, JSON of wattle blocks, or a folder of a job's run files. As saved_blocks_load.
int load_blocks(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr);
// Of a job in a store, by its id. As load_job.
int load_blocks_stored(const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr);
