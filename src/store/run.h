/* A stored run, read back into columns: what analysis, reports and exports work on. */
#pragma once

#include "base/error.h"
#include "metric/event.h"
#include "metric/metric.h"
#include "sensor/sensor.h"
#include "span/row.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The values of a metric in some rows, as a loaded run has them: base + slope x row + code. Counters that grow evenly and gauges that
 * stay near each other take 0 to 4 bytes a row instead of 8. */
enum { VALUE_CHUNK = 128 }; // rows of a chunk; the last one may have fewer
struct value_chunk {
	int64_t base, slope;
	uint64_t mask, missing; // of a code; the code of VALUE_MISSING
	uint32_t width;         // of a code, in bytes, the lowest first
	unsigned char codes[];  // 8 bytes can be read at each
};

struct run_values {                        // of a metric, one a row
	const int64_t *plain;              // NULL: they are packed
	const struct value_chunk **chunks; // NULL, of all or of one: all of it is VALUE_MISSING
};

static inline bool values_any(struct run_values values) // false: all are VALUE_MISSING
{
	return values.plain != NULL || values.chunks != NULL;
}

static inline int64_t values_at(struct run_values values, size_t row)
{
	if (values.plain != NULL)
		return values.plain[row];
	const struct value_chunk *chunk = values.chunks != NULL ? values.chunks[row / VALUE_CHUNK] : NULL;
	if (chunk == NULL)
		return VALUE_MISSING;
	uint64_t at = row % VALUE_CHUNK, code;
	memcpy(&code, chunk->codes + at * chunk->width, sizeof(code));
	code = le64toh(code) & chunk->mask;
	return code == chunk->missing ? VALUE_MISSING
				      : (int64_t)((uint64_t)chunk->base + (uint64_t)chunk->slope * at + code);
}

struct run_fact { // a row of table run
	const char *key, *value;
};

struct run_device { // a row of table device with its samples
	int64_t id;
	char name[48];
	enum domain_kind kind;
	char inside[48], device[96], uuid[96], source[24];
	int index;
	enum provenance provenance;
	bool has_energy;
	double resolution_j, update_period_s, update_jitter_s, relative_error; // NaN unknown
	double energy_range_j; // what one round of the hardware's counter is; NaN: it never wraps, or unknown
	double idle_w, idle_error_w, idle_temperature_c; // the idle baseline of --attribution active; NaN: none
	char idle_date[32];                              // when that was measured, RFC 3339; "" none
	/* Calibration of a GPU's power sensor. The values below and idle_w have been multiplied by gain when the run was
	 * loaded; the store keeps them as read. */
	double gain, gain_error;    // NaN: not calibrated
	char gain_source[64];       // "" not calibrated
	int64_t memory_total_bytes; // VALUE_MISSING unknown
	const int64_t *seen_ns; // from and to in each segment, when there was anybody who could read it; NULL: always
	size_t n;
	int64_t *t_ns;                 // n of them, ascending
	int64_t *values[DEVICE_COUNT]; // each n long, VALUE_MISSING where null; NULL: packed. Read with device_value
	const struct value_chunk **packed[DEVICE_COUNT]; // NULL: there is none
};

struct run_process { // a row of table process
	int64_t pid, ppid, start_ns, end_ns, cpu_ns, max_rss_bytes;
	const char *command;
	bool is_main, sampled;
};

struct run_segment {                  // a row of table segment: one recording of an appended-to file
	int64_t id, start_ns, end_ns; // end_ns: of the last sample if the recorder died
	int64_t wall_start_ns;        // Unix time of start_ns
	int64_t boot_start_ns;        // CLOCK_BOOTTIME of it; VALUE_MISSING unknown
	int64_t pid, exit_code;       // VALUE_MISSING unknown
	const char *command_json;     // argv as a JSON array
	bool complete;
	// the footer's figures of this segment, VALUE_MISSING where the recorder died before it knew
	int64_t samples, lost_samples, main_cpu_ns, descendants_cpu_ns, referee_cpu_ns, processes_seen,
		processes_sampled;
	int64_t peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, major_faults, minor_faults;
	int64_t voluntary_switches, involuntary_switches, self_cpu_ns, self_max_rss_bytes, self_wakeups;
	int64_t lost_spans, unwound_spans;
	const char *cpu_method;
};

#define RUN_SLEPT_MAX_NS (INT64_C(1) << 60) // nothing sleeps for 36 years
struct run_sleep { // the machine was suspended; CLOCK_MONOTONIC stood still just before t_ns
	int64_t t_ns, slept_ns;
};

struct run_span { // a row of table span; equal names are one pointer
	int64_t id, parent;       // ids from 1; parent VALUE_MISSING or 0: none, or unknown
	int64_t begin_ns, end_ns; // end_ns VALUE_MISSING: never ended
	int64_t cpu_ns;           // CPU time of its thread in it; VALUE_MISSING: not asked for
	int32_t pid, tid;         // tid 0: unknown (spans of a sub-tracking file)
	const char *name;
	const char *category; // NULL: none
	enum span_kind kind;
	enum span_close close;
};

struct run_user_metric {
	int64_t t_ns;
	const char *name;
	double value;
	int64_t span;     // id of the innermost span that was open in its thread; VALUE_MISSING or 0: none, or unknown
	int32_t pid, tid; // 0: unknown
};

struct run_process_samples { // table process_sample, with --per-process; ascending in time
	size_t n;
	int64_t *t_ns, *pid, *start_ns;
	int64_t *values[PROCESS_COUNT]; // and packed: as those of devices; read with process_value
	const struct value_chunk **packed[PROCESS_COUNT];
};

// Columns are to be read only: a device that was read with each sample and never else has the run's times for its own.
struct run {
	struct run_fact *facts;
	size_t n_facts;
	struct run_segment *segments;
	size_t n_segments;
	size_t n; // samples
	int64_t n_gone; // samples that its store no longer has: their days were pruned
	int64_t *t_ns;
	int64_t *values[RUN_COUNT]; // and packed: as those of devices; read with run_value
	const struct value_chunk **packed[RUN_COUNT];
	struct run_device *devices;
	size_t n_devices;
	struct run_process *processes;
	size_t n_processes;
	struct run_process_samples process_samples;
	struct event *events;
	size_t n_events;
	struct run_sleep *sleeps;
	size_t n_sleeps;
	struct run_span *spans;
	size_t n_spans;
	bool has_left_out_spans; // it was loaded without them (run_extent.no_spans)
	struct run_user_metric *user_metrics;
	size_t n_user_metrics;
	int64_t anchor_mono_ns, anchor_wall_ns;
	struct arena *arena; // owns all of the above
};

static inline struct run_values run_column(const struct run *run, size_t metric)
{
	return (struct run_values){run->values[metric], run->packed[metric]};
}
static inline int64_t run_value(const struct run *run, size_t metric, size_t sample)
{
	return values_at(run_column(run, metric), sample);
}
static inline struct run_values device_column(const struct run_device *device, size_t metric)
{
	return (struct run_values){device->values[metric], device->packed[metric]};
}
static inline int64_t device_value(const struct run_device *device, size_t metric, size_t row)
{
	return values_at(device_column(device, metric), row);
}
static inline struct run_values process_column(const struct run_process_samples *samples, size_t metric)
{
	return (struct run_values){samples->values[metric], samples->packed[metric]};
}
static inline int64_t process_value(const struct run_process_samples *samples, size_t metric, size_t row)
{
	return values_at(process_column(samples, metric), row);
}
// Puts all values of a loaded run into plain columns, for those who lend them to others. -ENOMEM.
int run_unpack(struct run *run);

// Reads a run file (complete, still growing, or left behind by a dead recorder). -ENOENT, -EINVAL (not a run file, or
// damaged), -ENOTSUP (of a newer schema) with a sentence. *ret_run is released by run_finish.
int run_load(const char *path, struct run *ret_run, struct wattle_error *reterr);
/* What a part of it says of devices: facts, segments, events, and the samples from from_ns to to_ns; no process, no span. For
 * those who look again and again at a file that grows. The end of a segment that goes on is the last of those samples. */
int run_load_devices(const char *path, int64_t from_ns, int64_t to_ns, struct run *ret_run, struct wattle_error *reterr);
void run_finish(struct run *run);
// Value of a key in table run, or NULL.
const char *run_fact(const struct run *run, const char *key);
double run_fact_double(const struct run *run, const char *key); // NaN if absent
int64_t run_fact_i64(const struct run *run, const char *key);   // VALUE_MISSING if absent
// Memory of all GPUs of the machine, measured or not: 0 without a GPU, NaN where that of one of them is unknown.
double run_gpu_capacity_bytes(const struct run *run);
// Which unit the run was asked for, by its fact: "ram_unit", "gpu_ram_unit" or "time_unit"; gpu_tracker's default where that is none.
const char *run_unit(const struct run *run, const char *fact);
int64_t run_count_gpus(const struct run *run); // the measured ones
// Unix time of an instant of the run, by the clocks of the segment it lies in; VALUE_MISSING without any anchor.
int64_t run_wall_ns(const struct run *run, int64_t t_ns);
// How much longer it was from one instant to a later one by the clocks that go on while the machine sleeps. VALUE_MISSING:
// a damaged file says that it was longer than any.
int64_t run_slept_ns(const struct run *run, int64_t from_ns, int64_t to_ns);
