/* gpu_tracker's 21 columns, from a run: the figures of its tracking file, of its maxima and of its code blocks.
 *
 * CPU percent (100: one core busy) is the difference of counters over about 100 ms, as gpu_tracker measures over
 * 0.1 s, or over the sampling interval if that is longer. RAM is private plus shared memory; between two readings it is
 * the lower of carried forward and carried back (metric/ram.h). GPU memory is that of all measured GPUs, 0 if there are
 * none. */
#pragma once

#include "base/arena.h"
#include "metric/ram.h"
#include "store/run.h"

enum column {
	COLUMN_MAIN_RAM,
	COLUMN_DESCENDANTS_RAM,
	COLUMN_COMBINED_RAM,
	COLUMN_SYSTEM_RAM,
	COLUMN_MAIN_GPU_RAM,
	COLUMN_DESCENDANTS_GPU_RAM,
	COLUMN_COMBINED_GPU_RAM,
	COLUMN_SYSTEM_GPU_RAM,
	COLUMN_GPU_SUM,
	COLUMN_GPU_HARDWARE,
	COLUMN_MAIN_THREADS,
	COLUMN_DESCENDANTS_THREADS,
	COLUMN_COMBINED_THREADS,
	COLUMN_CPU_SYSTEM_SUM,
	COLUMN_CPU_SYSTEM_HARDWARE,
	COLUMN_CPU_MAIN_SUM,
	COLUMN_CPU_MAIN_HARDWARE,
	COLUMN_CPU_DESCENDANTS_SUM,
	COLUMN_CPU_DESCENDANTS_HARDWARE,
	COLUMN_CPU_COMBINED_SUM,
	COLUMN_CPU_COMBINED_HARDWARE,
	COLUMN_COUNT
};

enum column_scale { COLUMN_PLAIN, COLUMN_RAM, COLUMN_GPU_RAM }; // the latter two: bytes, shown in the unit asked for

const char *column_name(enum column column); // as in the tracking file
enum column_scale column_scale(enum column column);

/* What takes more than one sample to know, a number for each sample; the other columns are made of these and of the run. */
struct columns {
	const struct run *run;
	double *ram[RAM_GROUPS]; // bytes; NaN unknown, here and below
	double *system_percent, *main_percent, *descendants_percent;
	struct column_gpu {
		const struct run_device *device;
		uint32_t *row; // of the device, nearest in time to each of the run's samples
	} * gpus;
	size_t n_gpus;
	double private_max_bytes[RAM_GROUPS], shared_max_bytes[RAM_GROUPS]; // the two parts of RAM
	double cores, expected_cores;
};

int columns_make(const struct run *run, struct arena *arena, struct columns *ret_columns); // -ENOMEM
// All columns at one of the run's samples: bytes, percent, threads; NaN unknown.
void columns_at(const struct columns *columns, size_t sample, double ret_values[COLUMN_COUNT]);
