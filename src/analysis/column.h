/* gpu_tracker's 21 columns (metric/tracking_column.h) computed from a run: for its tracking file, maxima and code
 * blocks.
 *
 * CPU percent (100: one core busy) is the difference of counters over about 100 ms, as gpu_tracker measures over 0.1 s,
 * or over the sampling interval if that is longer. RAM is private plus shared memory; between two readings it is the
 * lower of the values carried forward and carried back (metric/ram.h). GPU memory is the sum over all measured GPUs, 0
 * if there are none. */
#pragma once

#include "base/arena.h"
#include "metric/ram.h"
#include "metric/tracking_column.h"
#include "store/run.h"

// Shortest interval for differences of CPU time: 100 ms, less the jitter of the sampler's ticks.
enum { WINDOW_MIN_MS = 95 };

enum column_cpu { COLUMN_SYSTEM, COLUMN_MAIN, COLUMN_DESCENDANTS, COLUMN_CPUS };

/* Values that depend on more than one sample, one entry per sample; the other columns follow from these and the run. */
struct columns {
	const struct run *run;
	double *ram[RAM_GROUPS]; // bytes; NaN unknown, here and below
	uint32_t *cpu_base
		[COLUMN_CPUS]; // base sample of each sample's CPU percent; UINT32_MAX: none
	struct column_gpu {
		const struct run_device *device;
		uint32_t *
			row; // the device's row nearest in time to each of the run's samples; NULL: the row of the same index
	} * gpus;
	size_t n_gpus;
	double private_max_bytes[RAM_GROUPS], shared_max_bytes[RAM_GROUPS]; // maxima of the two parts of RAM, bytes
	double cores, expected_cores;
};

int columns_make(const struct run *run, struct arena *arena, struct columns *ret_columns); // -ENOMEM
// All columns at one of the run's samples: bytes, percent, threads; NaN unknown.
void columns_at(const struct columns *columns, size_t sample, double ret_values[TRACKING_METRICS]);
