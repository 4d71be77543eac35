/* All runs of a job and what they say, from a folder of run files or from a store. */
#pragma once

#include "analysis/job/job.h"
#include "base/error.h"
#include "store/job_runs.h"

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
