/* From wattle's samples to the rows of gpu_tracker's tracking file. Pure: no file, no clock.
 *
 * - Memory is private plus shared memory, which wattle reads less often than the rest and carries forward between
 *   readings (metric/ram.h).
 * - CPU percentages are differences of counters since the sample before: 100 is one core. So the first sample of a
 *   recording gives no row of its own, unless it stays the only one; it then shows the mean since the start.
 * - The kernel counts CPU time in ticks, so at the start of a recording there is no difference yet. Rows of that time
 *   wait, and take the first percentages that are known: those are means over a time that contains the row.
 * - What could not be had is NaN. Without a GPU in the machine the GPU columns are 0, as gpu_tracker writes. */
#pragma once

#include "metric/metric.h"
#include "metric/ram.h"
#include "metric/tracking_column.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The file's own header, already in its units.
struct tracking_facts {
	const char *ram_unit, *gpu_ram_unit, *time_unit; // names that base/units knows; borrowed
	double ram_system_capacity, gpu_ram_system_capacity;
	int64_t system_core_count, n_expected_cores, system_gpu_count, n_expected_gpus; // VALUE_MISSING unknown
};

struct tracking_field { // of that header
	const char *name;
	const char *text; // NULL: a number
	double number;    // NaN unknown
	bool is_integer;
};
// The capacities, in the units that the facts name.
void tracking_facts_capacity(struct tracking_facts *facts, double ram_bytes, double gpu_ram_bytes);
enum { TRACKING_STATICS = 9 };
void tracking_statics(const struct tracking_facts *facts, struct tracking_field ret_fields[TRACKING_STATICS]);

struct tracking_row {
	double values[TRACKING_COLUMNS];
};

// The measured GPUs of one sample, summed; NaN as soon as one of them could not say.
struct tracking_gpus {
	size_t n;
	double main_bytes, target_bytes, used_bytes, utilization_percent;
};
void tracking_gpus_add(struct tracking_gpus *gpus, const int64_t *device_values);

struct tracking_counter {
	bool known, compared; // compared: there was a difference, or the counter went back
	int64_t t_ns, value;
	double percent; // of the last difference, of one core; NaN: none yet
};

// Rows that wait for their CPU percentages: at most 50 ms of samples, and /proc is read every 10 ms at most.
enum { TRACKING_HELD_MAX = 16 };

/* What is remembered from sample to sample. A plain value: copy it to be able to go back. */
struct tracking_rows {
	double ram_unit_bytes, gpu_ram_unit_bytes;
	int64_t n_cores, n_expected_cores, n_gpus_system, n_gpus_expected;
	int64_t anchor_mono_ns, anchor_wall_ns;
	struct tracking_counter main, descendants, busy, idle;
	double system_percent;        // of all cores, for samples closer than the kernel's tick
	struct ram_tracker ram;       // carries the readings of smaps forward
	struct tracking_row only_row; // of the first sample, while it has no successor
	bool has_only_row, has_previous;
	struct tracking_row held[TRACKING_HELD_MAX];        // not taken yet, oldest first
	size_t n_held, n_ready;                             // n_ready: those of them that no longer wait
	int64_t last_ns, last_main_ns, last_descendants_ns; // the last sample's time and CPU counters
};

void tracking_rows_init(struct tracking_rows *rows, const struct tracking_facts *facts);
// A recording begins: counters from 0. The anchor is an instant at its start, on both clocks.
void tracking_rows_start(struct tracking_rows *rows, int64_t anchor_mono_ns, int64_t anchor_wall_ns);
/* The next sample. is_row: false for one before the start or after the end of the target, which is only compared with.
 * Each call may complete several rows: take them all. */
void tracking_rows_feed(struct tracking_rows *rows, int64_t t_ns, const int64_t *run_values,
	const struct tracking_gpus *gpus, bool is_row);
// The recording has ended: what still waits becomes ready, and so does its only sample.
void tracking_rows_end(struct tracking_rows *rows);
// The oldest row that is ready; false if there is none.
bool tracking_rows_take(struct tracking_rows *rows, struct tracking_row *ret_row);
