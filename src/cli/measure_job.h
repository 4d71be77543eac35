/* What a recording says of its job: facts for table run, and what it shares sensors by. */
#pragma once

#include "base/env.h"
#include "job/place.h"
#include "store/store.h"

enum { JOB_FACTS_MAX = 20, JOB_NUMBER_SIZE = 24 };

struct measure_job {
	struct job_place place;
	bool attached;                // beside its target, which may have been started by a recorder of the job itself
	char name[2 * JOB_TEXT_SIZE]; // without secrets: LSF makes it of the command line
	char user[JOB_TEXT_SIZE];     // name of the uid, or its number
	char machine[200];            // the same for all who read the same sensors
	char node[256];               // the scheduler's name of it, else the host's
	char group[1024]; // the same for those of whom one reads a sensor for all; "": we read for ourselves
	char numbers[JOB_FACTS_MAX][JOB_NUMBER_SIZE];
	struct store_fact facts[JOB_FACTS_MAX];
	size_t n_facts;
};

// id: what --job says, it wins; NULL: nothing.
void measure_job_place(struct measure_job *job, const char *id);
void measure_job_facts(struct measure_job *job, const struct wattle_env *env, const char *host, bool alone,
	bool hide_command);
