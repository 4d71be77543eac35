/* Loads runs from PostgreSQL. */
#pragma once

#include "store/job_runs.h"
#include "store/list.h"
#include "store/run.h"

/* Runs in a PostgreSQL store, as columns: built by the same code as for run files (store/run_read.h). */

struct pg;
struct pg_loader;

enum { PG_RUN_ID_SIZE = 37 };

// Loads any number of runs over one connection, which is borrowed. All reads see the state of this instant.
int pg_loader_open(struct pg *pg, struct pg_loader **ret_loader, struct wattle_error *reterr);
void pg_loader_close(struct pg_loader *loader); // may be NULL

/* id: the complete run id. -ENOENT: no such run. Samples are thinned by level: every_ns of one second or more leaves one sample
 * per second, per several seconds, or per minute. */
int pg_run_load(struct pg_loader *loader, const char *id, const struct run_extent *extent, struct run *ret_run,
	struct wattle_error *reterr);
// Loads the stored statistics of the run's blocks; *ret_blocks is in the arena.
int pg_blocks_load(struct pg_loader *loader, const char *id, struct arena *arena, struct stored_block **ret_blocks,
	size_t *ret_n, struct wattle_error *reterr);
// Finds the complete id of the only run whose id begins with `prefix`. -ENOENT: none; -EINVAL: several, or `prefix` cannot
// begin an id.
int pg_run_find(struct pg *pg, const char *prefix, char ret_id[PG_RUN_ID_SIZE], struct wattle_error *reterr);
// Connects, finds the run whose id begins with `prefix`, and loads it.
int pg_run_load_from(const char *url, const char *prefix, struct run *ret_run, struct wattle_error *reterr);

/* Lists the runs of a store. */

struct pg;

// As list_runs: sorted by start; unknown starts last. `path` of each row is NULL.
int pg_list_runs(struct pg *pg, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr);
