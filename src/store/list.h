/* The run files of a folder, with what is cheap to know of each: nothing that would read its samples. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_listing {
	const char *path;                             // DIR/NAME; NULL: it is in a store
	const char *id, *host, *command_json, *label; // NULL unknown
	const char *user, *job_id, *job_step;         // NULL unknown, or none
	int64_t rank, interval_ns;                    // VALUE_MISSING unknown
	int64_t wall_start_ns;                        // Unix time of its first segment; VALUE_MISSING unknown
	double duration_s;         // sum over segments, to the last sample of one that is open; NaN unknown
	int64_t segments, samples; // samples that were stored; VALUE_MISSING unknown
	int64_t exit_code;         // of the last segment; VALUE_MISSING unknown
	double energy_j, error_j;  // of the store, NaN unknown: of a file they would have to be computed
	const char *provenance;    // of energy_j; NULL unknown
	bool complete;             // false: being recorded, or the recorder died
	const char *problem;       // why it could not be read, a sentence; NULL: it could
};

struct list_choice {                          // which runs are wanted
	const char *user, *job_id;            // NULL: all
	int64_t since_wall_ns, until_wall_ns; // started from .. until before; VALUE_MISSING: whenever
};
bool list_wants(const struct list_choice *choice, const struct run_listing *listing);

/* Run files are known by their first bytes, not by their names. In order of start, those that could not be read last.
 * The arena owns it all. -ENOENT, -ENOTDIR, -EACCES with a sentence; an unreadable file is a row with a problem. */
int list_runs(const char *folder, struct arena *arena, struct run_listing **ret_listings, size_t *ret_n,
	struct wattle_error *reterr);
