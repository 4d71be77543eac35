/* What gathering the runs of a job out of a folder and out of PostgreSQL have in common. Between room-mates. */
#pragma once

#include "base/buf.h"
#include "store/job_runs.h"

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
