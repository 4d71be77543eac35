/* Shared by lanes.c and lanes_merge.c. */
#pragma once

#include "analysis/chart/builder.h"
#include "analysis/keys.h"

enum { LANE_RANGES = UINT32_MAX - 1 }; // pseudo thread of a process's ranges
enum { LANE_DEPTH_MAX = 256 };         // deeper spans are counted, not drawn

struct lane_span {
	int64_t begin_ns, end_ns;
	uint32_t span;            // index in run.spans
	uint32_t process, thread; // numbered in the order of their first spans
	uint32_t depth, lane;
};

struct lane_work {
	const struct run *run;
	struct charts *charts;
	struct lane_span *spans; // n entries, lane by lane
	size_t n;
	struct chart_lane *lanes; // owned
	size_t *first_of;         // first span of each lane; owned
	double *time_s;
	size_t n_lanes, capacity;
	size_t thread_begin; // first lane of the current thread
};

// Merges neighbours until there are few enough items.
void lanes_merge(struct charts *charts, size_t max_items);
