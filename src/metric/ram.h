/* gpu_tracker's "RAM" (private plus shared memory) at each sample, although it is read less often.
 *
 * Between two readings the recorder extrapolates the last one (process/memory.h) and stores the results in main_ram_bytes,
 * descendants_ram_bytes and combined_ram_bytes. If the extrapolated value exceeds the next reading, earlier values were too
 * high as well: the lower of the forward and backward extrapolation is used. Live views have no next reading and show the
 * forward extrapolation.
 *
 * Runs without main_ram_bytes (stored by earlier versions): an increase of resident memory since the last reading counts as
 * private, up to RSS. Without any reading the total is the recorder's estimate, or RSS, and private and shared are unknown.
 * Combined RAM is never above the sum of main and descendants and never below one of them. */
#pragma once

#include "metric/metric.h"

enum ram_group { RAM_MAIN, RAM_DESCENDANTS, RAM_COMBINED, RAM_GROUPS };

struct ram_values { // NaN: unknown
	double total_bytes, private_bytes, shared_bytes;
	double above_bytes; // at a reading: excess of the forward extrapolation over it; else 0
};

struct ram_tracker {
	struct ram_reading {
		bool known;
		int64_t private_bytes, shared_bytes, rss_bytes; // rss_bytes: of the same sample, or VALUE_MISSING
	} last[RAM_GROUPS];
};

void ram_init(struct ram_tracker *tracker); // call at the start of each segment
// Whether ram_next uses this RUN value.
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
// Processes the RUN values of the next sample. Returns true if the sample has a reading.
bool ram_next(struct ram_tracker *tracker, const int64_t *run_values, struct ram_values ret_values[RAM_GROUPS]);
// Corrects the totals of a sample by the above_bytes of the next reading.
void ram_carry_back(double totals_bytes[RAM_GROUPS], const double above_bytes[RAM_GROUPS]);
