/* gpu_tracker's "RAM" (private plus shared memory) at each sample, although it is read only now and then.
 *
 * Between two readings the recorder carries the last one forward (process/memory.h) and stores that in
 * main_ram_bytes, descendants_ram_bytes and combined_ram_bytes. Where the figure that was carried forward exceeds the
 * next reading, it was too high before as well: the lower of "carried forward" and "carried back" holds. Live views have no
 * next reading and show the figure that is carried forward.
 *
 * Runs without main_ram_bytes (stored by earlier versions): resident memory gained since the last reading counts as private,
 * up to RSS. Where nothing was ever read the total is what the recorder estimated, or RSS, and private and shared are
 * unknown. Combined RAM is never above the sum of main and descendants and never below one of them. */
#pragma once

#include "metric/metric.h"

enum ram_group { RAM_MAIN, RAM_DESCENDANTS, RAM_COMBINED, RAM_GROUPS };

struct ram_values { // NaN unknown
	double total_bytes, private_bytes, shared_bytes;
	double above_bytes; // at a reading: by how much the figure that was carried forward to it exceeds it; else 0
};

struct ram_tracker {
	struct ram_reading {
		bool known;
		int64_t private_bytes, shared_bytes, rss_bytes; // rss_bytes: of the same sample, or VALUE_MISSING
	} last[RAM_GROUPS];
};

void ram_init(struct ram_tracker *tracker); // at the start of each segment
// The only RUN values that ram_next looks at.
static inline bool ram_needs(enum run_metric metric)
{
	switch ((int)metric) {
	case RUN_MAIN_RSS:
	case RUN_DESCENDANTS_RSS:
	case RUN_MAIN_PRIVATE:
	case RUN_DESCENDANTS_PRIVATE:
	case RUN_MAIN_SHARED:
	case RUN_DESCENDANTS_SHARED:
	case RUN_COMBINED_SHARED:
	case RUN_MAIN_RAM:
	case RUN_DESCENDANTS_RAM:
	case RUN_COMBINED_RAM:
		return true;
	default:
		return false;
	}
}
// Takes the RUN values of the next sample. True: there was a reading at it.
bool ram_next(struct ram_tracker *tracker, const int64_t *run_values, struct ram_values ret_values[RAM_GROUPS]);
// The totals of a sample before the next reading, which has above_bytes.
void ram_carry_back(double totals_bytes[RAM_GROUPS], const double above_bytes[RAM_GROUPS]);
