/* gpu_tracker's 21 columns (metric/tracking_column.h), from a run: the figures of its tracking file, of its maxima and of its code blocks.
 *
 * CPU percent (100: one core busy) is the difference of counters over about 100 ms, as gpu_tracker measures over
 * 0.1 s, or over the sampling interval if that is longer. RAM is private plus shared memory; between two readings it is
 * the lower of carried forward and carried back (metric/ram.h). GPU memory is that of all measured GPUs, 0 if there are
 * none. */
#pragma once

#include "base/arena.h"
#include "metric/ram.h"
#include "metric/tracking_column.h"
#include "store/run.h"

// Differences of CPU time are taken over so long at least: 100 ms but for the jitter of the sampler's ticks.
enum { WINDOW_MIN_MS = 95 };

enum column_cpu { COLUMN_SYSTEM, COLUMN_MAIN, COLUMN_DESCENDANTS, COLUMN_CPUS };

/* What takes more than one sample to know, a number for each sample; the other columns are made of these and of the run. */
struct columns {
	const struct run *run;
	double *ram[RAM_GROUPS]; // bytes; NaN unknown, here and below
	uint32_t *cpu_base
		[COLUMN_CPUS]; // of each sample the one from which its CPU percent counts; UINT32_MAX: it has none
	struct column_gpu {
		const struct run_device *device;
		uint32_t *
			row; // of the device, nearest in time to each of the run's samples; NULL: the one of the same index
	} * gpus;
	size_t n_gpus;
	double private_max_bytes[RAM_GROUPS], shared_max_bytes[RAM_GROUPS]; // the two parts of RAM
	double cores, expected_cores;
};

int columns_make(const struct run *run, struct arena *arena, struct columns *ret_columns); // -ENOMEM
// All columns at one of the run's samples: bytes, percent, threads; NaN unknown.
void columns_at(const struct columns *columns, size_t sample, double ret_values[TRACKING_METRICS]);
