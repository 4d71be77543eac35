/* The run files of a folder, with what is cheap to know of each: nothing that would read its samples. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_listing {
	const char *path;                             // DIR/NAME
	const char *id, *host, *command_json, *label; // NULL unknown
	const char *user, *job_id, *job_step;         // NULL unknown, or none
	int64_t rank, interval_ns;                    // VALUE_MISSING unknown
	int64_t wall_start_ns;                        // Unix time of its first segment; VALUE_MISSING unknown
	double duration_s;         // sum over segments, to the last sample of one that is open; NaN unknown
	int64_t segments, samples; // samples that were stored; VALUE_MISSING unknown
	int64_t exit_code;         // of the last segment; VALUE_MISSING unknown
	bool complete;             // false: being recorded, or the recorder died
	const char *problem;       // why it could not be read, a sentence; NULL: it could
};

/* Run files are known by their first bytes, not by their names. In order of start, those that could not be read last.
 * The arena owns it all. -ENOENT, -ENOTDIR, -EACCES with a sentence; an unreadable file is a row with a problem. */
int list_runs(const char *folder, struct arena *arena, struct run_listing **ret_listings, size_t *ret_n,
	struct wattle_error *reterr);
