/* The run files of a folder, with properties that are available without reading samples. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_listing {
	const char *path;                             // DIR/NAME; NULL: the run is in a PostgreSQL store
	const char *id, *host, *command_json, *label; // NULL unknown
	const char *user, *job_id, *job_step;         // NULL unknown, or none
	int64_t rank, interval_ns;                    // VALUE_MISSING unknown
	int64_t wall_start_ns;                        // Unix time of the first segment's start; VALUE_MISSING unknown
	double duration_s;         // sum over segments; an open segment ends at its last sample; NaN unknown
	int64_t segments, samples; // samples: stored samples; VALUE_MISSING unknown
	int64_t exit_code;         // of the last segment; VALUE_MISSING unknown
	double energy_j, error_j;  // from PostgreSQL; NaN unknown: for a file they would have to be computed
	const char *provenance;    // of energy_j; NULL unknown
	bool complete;             // false: still recording, or the recorder died
	const char *problem;       // why the file cannot be read; NULL: it can be read
};

struct list_choice {                          // filter
	const char *user, *job_id;            // NULL: all
	int64_t since_wall_ns, until_wall_ns; // start time from (inclusive) and until (exclusive); VALUE_MISSING: unlimited
};
bool list_accepts(const struct list_choice *choice, const struct run_listing *listing);

/* Recognises run files by their first bytes, not by their names. Sorted by start; unreadable files last. The arena owns the
 * result. -ENOENT, -ENOTDIR, -EACCES with a message; an unreadable file is a row with a `problem`. */
int list_runs(const char *folder, struct arena *arena, struct run_listing **ret_listings, size_t *ret_n,
	struct wattle_error *reterr);
