/* What the program and the package for Python both do with files and stores. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/tracking_blocks.h"
#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "base/error.h"
#include "store/job_runs.h"
#include "store/postgres/send.h"
#include "store/run.h"
#include "store/saved_blocks.h"

#include <stdbool.h>
#include <stdint.h>

/* Results in files, side by side. */

struct named_file {
	const char *name, *file; // names differ
	const char *store;       // URL: `file` is the id of a job there; NULL: a file, or the folder of a job
};

/* Each file as load_blocks takes it; statistic: min, max, mean or std. The arena owns the result. What load_blocks and
 * compare_make return. */
int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr);

struct compared_run { // what a page shows of one of them, besides
	struct run run;
	struct findings findings;
	struct charts charts;
	bool is_run; // false: saved results, of which there is nothing else
};
// The same, and the runs themselves: n of them, zeroed by the caller, and his to finish whatever comes back.
int compare_runs(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct compared_run *ret_runs, struct comparison *ret_comparison, struct wattle_error *reterr);
void compare_runs_finish(struct compared_run *runs, size_t n);

/* A run file in another layout. */

struct export_choice {
	const char *format; // csv, jsonl, gpu_tracker … (export_formats), folded, or aipowermeter
	const char *weight; // of folded: energy or time; NULL: energy
	const char *path;   // what is written, aipowermeter's folder; - is standard output
	bool overwrite;
	int64_t every_ns; // of openmetrics: at most one sample of a series in so long; 0: all
};

// -EINVAL: no such format or weight; -EEXIST; -ENODATA: the run has nothing to write so; what run_load returns.
int export_file(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr);

/* A run as a folder of AIPowerMeter's. */

// -EEXIST: the folder is there, is not empty, and may not be overwritten; -ENODATA: the run has no samples.
int export_aipowermeter(const struct run *run, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr);

/* The code blocks of whatever file they are in. */

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

/* All runs of a job and what they say, from a folder of run files or from a store. */

struct loaded_job { // stays where it is: the findings point to the runs
	struct job_runs runs;
	struct job_findings job;
};

bool load_is_folder(const char *path);
/* One of `folder` and `url` is given. As job_runs_from_folder and pg_open; options may be NULL. *ret_job is to be finished after 0, and
 * options must outlive it. */
int load_job(const char *folder, const char *url, const struct job_choice *choice, const struct job_options *options,
	struct loaded_job *ret_job, struct wattle_error *reterr);
void load_job_finish(struct loaded_job *job);

/* A run file into a store in PostgreSQL: what `wattle push` does, and the sender of `run --store`. */

/* The last of a run whose recorder is gone, after send_batch has said 0: what only the whole of it tells (processes, whether all rows
 * are there, energy and code blocks by the report's own code). Returns as send_batch. */
int push_end(struct send *send, const char *path, struct wattle_error *reterr);

struct push_result {
	struct send_count sent;
	char run_id[40];
	bool is_live; // its recorder goes on: what is final so far has been sent
};

/* All that there is. A server that goes away is waited for, wait_ns in all without a batch that went through. The sentence of a failure
 * says what is not sent. */
int push_file(const char *path, const char *url, int64_t wait_ns, struct push_result *ret_result,
	struct wattle_error *reterr);

// How long to wait before the n-th try in a row, n from 1: 0.2 s, doubled up to 20 s, and somewhat by chance: many wait for one server.
int64_t push_backoff_ns(int n);

/* Code blocks of gpu_tracker's own files. */

/* tracking_file NULL: compute times only. The arena owns the result. What tracking_table_read and sub_tracking_read return. */
int tracking_files_blocks(const char *tracking_file, const char *sub_tracking_file, struct arena *arena,
	struct tracking_findings *ret_findings, struct wattle_error *reterr);
