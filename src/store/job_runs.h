/* All runs of a job, from a folder of run files or from PostgreSQL, read at reduced resolution where that suffices. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "store/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pg;

/* Part of a run to be read. Thinning omits samples. The remaining ones are true counter readings, so total energy and CPU
 * time are unchanged and only the time resolution decreases. The first and the last sample of a segment are always read. */
struct run_extent {
	int64_t every_ns; // one sample (with its device samples) per interval; 0: all
	bool no_spans;    // skip spans and user metrics
};
int run_load_extent(const char *path, const struct run_extent *extent, struct run *ret_run,
	struct wattle_error *reterr);

/* Statistics of one code block, stored with the run: table `block` of PostgreSQL, for jobs with too many spans to read. Unknown
 * values are NaN, unknown counts VALUE_MISSING. energy_j is NaN if another rank of the node read the sensors. */
struct stored_block {
	const char *name;
#define BLOCK_COUNT(member, key, column, ...) int64_t column;
#define BLOCK_FIGURE(member, column, ...) double column;
#include "metric/blocks.def"
};

struct job_run {
	struct run run;
	const char *where;           // file name or run id, for messages
	struct stored_block *blocks; // n_blocks, if there are too many spans to load; else NULL
	size_t n_blocks;
};

struct job_runs {
	struct job_run *runs; // sorted by rank, restart, start
	size_t n;
	const char *job_id;    // NULL: the runs have no job id
	int64_t every_ns;      // 0: every sample was read
	const char **problems; // messages on files that cannot be read or are copies
	size_t n_problems;
	struct arena *arena; // owns this struct's arrays, not the memory of the runs
};

#define JOB_WITHOUT_ID "none" // as job_id: the runs of a folder that have ranks but no job id

struct job_choice {
	const char *job_id; // NULL: the only job
	const char *step;   // NULL: all steps
	bool all_samples;   // --all-samples: read all samples, however many
	const char *remedy; // advice if there are several jobs; NULL: use --job
};

/* -ENOENT: no such job (the message names the existing ones), or no run; -EINVAL: several jobs and none selected (the message
 * names them). Unreadable files of a folder are reported in `problems`, not as errors. */
int job_runs_from_folder(const char *folder, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr);
int job_runs_from_store(struct pg *pg, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr);
void job_runs_finish(struct job_runs *runs);

/* Shared by the readers of a job's runs from a folder and from PostgreSQL. Internal to src/store. */

/* Most samples and spans that the report of a job reads. One hour of 64 ranks is read at one sample per 2 s. Beyond the limits,
 * samples are thinned; if the store has block statistics, spans are skipped. */
enum { JOB_SAMPLES_MAX = 150000, JOB_SPANS_MAX = 100000, JOB_NAMES_MAX = 8 };

struct job_weight { // totals of the selected runs
	double samples, duration_s;
};
int64_t job_every_ns(const struct job_weight *weight, bool all_samples);

struct job_entry {                 // a run that is not loaded yet
	const char *job_id, *step; // NULL: none
	bool in_job;
};
/* Returns the id of the selected job; NULL: runs without a job id. `where` begins the message. */
int job_choose(const struct job_choice *choice, const struct job_entry *entries, size_t n, const char *where,
	const char **ret_id, struct wattle_error *reterr);
bool job_accepts(const struct job_choice *choice, const char *id, const struct job_entry *entry);
int job_fail_step(const struct job_choice *choice, const char *where, struct wattle_error *reterr);

int job_add_problem(struct job_runs *runs, const char *text); // -ENOMEM
void job_sort(struct job_runs *runs);
