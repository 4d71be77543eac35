/* gpu_tracker's tracking file (seeds.md A3), read back: the static data as it stands there, and its columns. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "store/tracking_row.h"

#include <stddef.h>

struct tracking_table {
	struct tracking_field *statics; // in the order of the file
	size_t n_statics;
	size_t n;                         // timepoints, at least 1
	size_t n_timed;                   // of them those whose time is known; they come first, in its order
	double *values[TRACKING_COLUMNS]; // n each, in the file's own units; NaN unknown
};

/* CSV or SQLite by the ending .csv or .sqlite; columns may stand in any order and beside others. -ENOENT …, -EINVAL with
 * a sentence that names the line or column. The arena owns the result. */
int tracking_table_read(const char *path, struct arena *arena, struct tracking_table *ret_table,
	struct wattle_error *reterr);
