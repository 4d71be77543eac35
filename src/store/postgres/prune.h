/* Old days dropped from a store. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct pg;

struct pg_prune {
	char before[32]; // the day, "2026-01-31": whatever is older goes
	int64_t days;    // that had partitions, and were dropped (or would be)
	int64_t tables;  // those partitions
	int64_t runs;    // whose recordings ended before that day
	int64_t bytes;   // given back to the file system by the partitions
};

/* Whole days of UTC that lie older_ns and more before the server's clock, and the small rows of runs that ended before them. What
 * a run that went on has from those days goes with them. A drop waits for whoever reads or writes the table, and everybody else
 * behind it; so it gives up after two seconds and comes again. dry: nothing is dropped, only counted.
 * -EACCES: the store is somebody else's; -EAGAIN: tables were in use all the time. What was dropped until then stays dropped. */
int pg_prune(struct pg *pg, int64_t older_ns, bool dry, struct pg_prune *ret_prune, struct wattle_error *reterr);
