/* gpu_tracker's "RAM" (private plus shared memory) at each sample, although smaps is read only now and then.
 *
 * Between two readings the last one is carried forward together with what resident memory has changed by since: what a
 * program allocates is private, and shows in RSS at once. It never exceeds RSS, which was read a moment before smaps, and
 * it is unknown where RSS is. Before the first reading, and where smaps can't be read, the total is RSS, and private and
 * shared are unknown. */
#pragma once

#include "metric/metric.h"

enum ram_group { RAM_MAIN, RAM_DESCENDANTS, RAM_COMBINED, RAM_GROUPS };

struct ram_values { // NaN unknown
	double total_bytes, private_bytes, shared_bytes;
};

struct ram_tracker {
	struct ram_reading {
		bool known;
		int64_t private_bytes, shared_bytes, rss_bytes; // rss_bytes: of the same sample, or VALUE_MISSING
	} last[RAM_GROUPS];
};

void ram_init(struct ram_tracker *tracker); // at the start of each segment
// Takes the RUN values of the next sample.
void ram_next(struct ram_tracker *tracker, const int64_t *run_values, struct ram_values ret_values[RAM_GROUPS]);
