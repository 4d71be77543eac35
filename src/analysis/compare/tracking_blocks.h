/* Code blocks from gpu_tracker's own files: the figures of its analyzer, in the units of the file.
 *
 * Statistics of a block cover the timepoints inside the union of its calls, each once, both ends included. Unknown
 * values are skipped; std is that of the population. Sums are compensated, because gpu_tracker's are pairwise and the
 * two must agree to 1e-12 over millions of values. */
#pragma once

#include "analysis/findings.h"
#include "store/sub_tracking.h"
#include "store/tracking.h"

struct tracking_block {
	const char *name;
	int64_t timepoints, calls, non_empty_calls; // timepoints and non_empty_calls: VALUE_MISSING without a tracking file
	struct value_stats compute_time_s;
	struct value_stats metrics[TRACKING_METRICS];
};

struct tracking_findings {
	const struct tracking_table *table; // NULL: only the calls are known
	struct value_stats overall[TRACKING_METRICS];
	struct tracking_block *blocks; // sorted by name
	size_t n_blocks;
};

/* The calls have the order of sub_tracking_read; table may be NULL. Results are in the arena and borrow from the
 * inputs. -ENOMEM. */
int tracking_blocks_make(const struct tracking_table *table, const struct sub_tracking_call *calls, size_t n_calls,
	struct arena *arena, struct tracking_findings *ret_findings);
