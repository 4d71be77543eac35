/* All runs of a job, from a folder of run files or from PostgreSQL, as few rows as do. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "store/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pg;

/* How much of a run is wanted. Samples are thinned by leaving some out: those that stay are true readings of counters, so that
 * energies and CPU times keep their sums, and only their course is coarser. The first and the last one of a segment always stay. */
struct run_extent {
	int64_t every_ns; // one sample (with its device samples) in so long; 0: all of them
	bool no_spans;    // spans and user metrics are left out
};
int run_load_extent(const char *path, const struct run_extent *extent, struct run *ret_run,
	struct wattle_error *reterr);

/* What a run told of one code block when it was stored: table `block` of PostgreSQL, for jobs with more spans than one wants to
 * read. Unknown is NaN, of a count VALUE_MISSING. energy_j is NaN where another rank of the node read the sensors. */
struct stored_block {
	const char *name;
#define BLOCK_COUNT(member, key, column, ...) int64_t column;
#define BLOCK_FIGURE(member, column, ...) double column;
#include "metric/blocks.def"
};

struct job_run {
	struct run run;
	const char *where;           // file name, or run id: for messages
	struct stored_block *blocks; // n_blocks: when run has no spans because there were too many; else NULL
	size_t n_blocks;
};

struct job_runs {
	struct job_run *runs; // in order of rank, restart, start
	size_t n;
	const char *job_id;    // NULL: these runs have none
	int64_t every_ns;      // 0: every sample was read
	const char **problems; // files that could not be read or are copies, as sentences
	size_t n_problems;
	struct arena *arena; // owns this, not the runs' own memory
};

#define JOB_WITHOUT_ID "none" // as job_id: the runs of a folder that have ranks and no id

struct job_choice {
	const char *job_id; // NULL: the only job there is
	const char *step;   // NULL: all steps
	bool all_samples;   // --full: however many there are
	const char *remedy; // of several jobs, what to do; NULL: --job chooses one
};

/* -ENOENT: no such job (the sentence names those that there are), or no run; -EINVAL: several jobs and none chosen, named in the
 * sentence. A folder's files that can't be read are problems, not errors. */
int job_runs_from_folder(const char *folder, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr);
int job_runs_from_store(struct pg *pg, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr);
void job_runs_finish(struct job_runs *runs);

/* What gathering the runs of a job out of a folder and out of PostgreSQL have in common. Between room-mates. */

/* So many samples a job's report reads: of an hour with 64 ranks one every 2 s. Beyond, samples are left out; and where the store keeps
 * blocks, spans too. */
enum { JOB_SAMPLES_MAX = 150000, JOB_SPANS_MAX = 100000, JOB_NAMES_MAX = 8 };

struct job_weight { // of the runs that are wanted
	double samples, duration_s;
};
int64_t job_every_ns(const struct job_weight *weight, bool all_samples);

struct job_entry {                 // of a run, before it is loaded
	const char *job_id, *step; // NULL: none
	bool in_job;
};
/* The id of the job that is meant; NULL: that without one. `where` begins the sentence. */
int job_choose(const struct job_choice *choice, const struct job_entry *entries, size_t n, const char *where,
	const char **ret_id, struct wattle_error *reterr);
bool job_wants(const struct job_choice *choice, const char *id, const struct job_entry *entry);
int job_fail_step(const struct job_choice *choice, const char *where, struct wattle_error *reterr);

int job_add_problem(struct job_runs *runs, const char *text); // -ENOMEM
void job_sort(struct job_runs *runs);
