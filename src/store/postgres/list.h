/* The runs of a store. */
#pragma once

#include "store/list.h"

struct pg;

// As list_runs: in order of start, those whose start is unknown last. Rows of `path` NULL.
int pg_list_runs(struct pg *pg, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr);
