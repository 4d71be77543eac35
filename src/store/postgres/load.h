/* Runs out of PostgreSQL. */
#pragma once

#include "store/job_runs.h"
#include "store/list.h"
#include "store/run.h"

/* Runs out of a store in PostgreSQL, as columns: the same code as for run files makes them (store/run_read.h). */

struct pg;
struct pg_loader;

enum { PG_RUN_ID_SIZE = 37 };

// For any number of runs over one connection, which is borrowed. Everything is seen as it is at this instant.
int pg_loader_open(struct pg *pg, struct pg_loader **ret_loader, struct wattle_error *reterr);
void pg_loader_close(struct pg_loader *loader); // NULL is fine

/* id: the run's id, whole. -ENOENT: there is no such run. Samples are thinned by their levels: every_ns of a second or more leaves
 * one in a second, or in so many of them, or in a minute. */
int pg_run_load(struct pg_loader *loader, const char *id, const struct run_extent *extent, struct run *ret_run,
	struct wattle_error *reterr);
// What the store keeps of its blocks; *ret_blocks lies in the arena.
int pg_blocks_load(struct pg_loader *loader, const char *id, struct arena *arena, struct stored_block **ret_blocks,
	size_t *ret_n, struct wattle_error *reterr);
// The whole id of the only run that begins so. -ENOENT: none does; -EINVAL: several do, or it is no beginning of an id.
int pg_run_find(struct pg *pg, const char *prefix, char ret_id[PG_RUN_ID_SIZE], struct wattle_error *reterr);
// All of it in one: connects, finds the run whose id begins so, loads it.
int pg_run_load_from(const char *url, const char *prefix, struct run *ret_run, struct wattle_error *reterr);

/* The runs of a store. */

struct pg;

// As list_runs: in order of start, those whose start is unknown last. Rows of `path` NULL.
int pg_list_runs(struct pg *pg, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr);
