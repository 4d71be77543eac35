/* A stored run, loaded into columns: the input of analysis, reports and exports. */
#pragma once

#include "base/checked_arith.h"
#include "base/error.h"
#include "metric/event.h"
#include "metric/metric.h"
#include "sensor/sensor.h"
#include "span/row.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Packed values of a metric: base + slope x row + code. Counters that grow evenly and gauges that change little take 0 to 4
 * bytes per row instead of 8. */
enum { VALUE_CHUNK = 128 }; // rows per chunk; the last one may have fewer
struct value_chunk {
	int64_t base, slope;
	uint64_t mask, missing; // mask of a code; the code that means VALUE_MISSING
	uint32_t width;         // bytes per code, little-endian
	unsigned char codes[];  // 8 bytes can be read from any code
};

struct run_values {                        // values of a metric, one per row
	const int64_t *plain;              // NULL: packed
	const struct value_chunk **chunks; // NULL array or NULL chunk: all its values are VALUE_MISSING
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

struct run_metadata { // a row of table run
	const char *key, *value;
};

struct run_device { // a row of table device, with its samples
	int64_t id;
	char name[48];
	enum domain_kind kind;
	char inside[48], device[96], uuid[96], source[24];
	int index;
	enum provenance provenance;
	bool has_energy;
	double resolution_j, update_period_s, update_jitter_s, relative_error; // NaN unknown
	double energy_range_j; // counter range; NaN: the counter never wraps, or unknown
	double idle_w, idle_error_w, idle_temperature_c; // the idle baseline of --attribution active; NaN: none
	char idle_date[32];                              // time of the idle measurement, RFC 3339; "" none
	/* Calibration of a GPU's power sensor. The values below and idle_w were multiplied by gain when the run was loaded; the
	 * store keeps the raw readings. */
	double gain, gain_error;    // NaN: not calibrated
	char gain_source[64];       // "" not calibrated
	int64_t memory_total_bytes; // VALUE_MISSING unknown
	const int64_t *seen_ns; // two times per segment: the interval in which a process could read the sensor; NULL: always
	size_t n;
	int64_t *t_ns;                 // n times, ascending
	int64_t *values[DEVICE_COUNT]; // n values each, VALUE_MISSING where null; NULL: packed. Read with device_value
	const struct value_chunk **packed[DEVICE_COUNT]; // NULL: no value
};

struct run_process { // a row of table process
	int64_t pid, ppid, start_ns, end_ns, cpu_ns, max_rss_bytes;
	const char *command;
	bool is_main, sampled;
};

struct run_segment {                  // a row of table segment: one recording of an appended-to file
	int64_t id, start_ns, end_ns; // end_ns: time of the last sample if the recorder died
	int64_t wall_start_ns;        // Unix time of start_ns
	int64_t boot_start_ns;        // CLOCK_BOOTTIME of start_ns; VALUE_MISSING unknown
	int64_t pid, exit_code;       // VALUE_MISSING unknown
	const char *command_json;     // argv as a JSON array
	bool complete;
	// figures of the footer; VALUE_MISSING if the recorder died before it stored them
	int64_t samples, lost_samples, main_cpu_ns, descendants_cpu_ns, referee_cpu_ns, processes_seen,
		processes_sampled;
	int64_t peak_rss_bytes, main_peak_rss_bytes, read_bytes, written_bytes, major_faults, minor_faults;
	int64_t voluntary_switches, involuntary_switches, self_cpu_ns, self_max_rss_bytes, self_wakeups;
	int64_t lost_spans, unwound_spans;
	const char *cpu_method;
};

#define RUN_SLEPT_MAX_NS (INT64_C(1) << 60) // 36 years: upper limit of a plausible suspend time
struct run_sleep { // a suspend of the machine; CLOCK_MONOTONIC stood still just before t_ns
	int64_t t_ns, slept_ns;
};

struct run_span { // a row of table span; equal names are one pointer
	int64_t id, parent;       // ids from 1; parent VALUE_MISSING or 0: none, or unknown
	int64_t begin_ns, end_ns; // end_ns VALUE_MISSING: never ended
	int64_t cpu_ns;           // CPU time of its thread; VALUE_MISSING: not recorded
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
	int64_t span;     // id of the innermost span open in the thread; VALUE_MISSING or 0: none, or unknown
	int32_t pid, tid; // 0: unknown
};

struct run_process_samples { // table process_sample, with --per-process; ascending in time
	size_t n;
	int64_t *t_ns, *pid, *start_ns;
	int64_t *values[PROCESS_COUNT]; // plain or packed, as for devices; read with process_value
	const struct value_chunk **packed[PROCESS_COUNT];
};

// Columns are read-only: a device that was read at every sample of the run shares the run's array of times.
struct run {
	struct run_metadata *facts;
	size_t n_metadata;
	struct run_segment *segments;
	size_t n_segments;
	size_t n; // number of samples
	int64_t n_gone; // samples that the store has pruned
	int64_t *t_ns;
	int64_t *values[RUN_COUNT]; // plain or packed, as for devices; read with run_value
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
	bool has_left_out_spans; // loaded without spans (run_extent.no_spans)
	struct run_user_metric *user_metrics;
	size_t n_user_metrics;
	int64_t anchor_mono_ns, anchor_wall_ns;
	struct arena *arena; // owns everything above
};

static inline struct run_values run_column(const struct run *run, size_t metric)
{
	return (struct run_values){run->values[metric], run->packed[metric]};
}
static inline int64_t run_value(const struct run *run, size_t metric, size_t sample)
{
	return values_at(run_column(run, metric), sample);
}
// Sum of two metrics, such as those of the main process and its descendants; VALUE_MISSING if either is missing.
static inline int64_t run_sum(const struct run *run, size_t a, size_t b, size_t sample)
{
	return value_sum(run_value(run, a, sample), run_value(run, b, sample));
}
static inline struct run_values device_column(const struct run_device *device, size_t metric)
{
	return (struct run_values){device->values[metric], device->packed[metric]};
}
static inline int64_t device_value(const struct run_device *device, size_t metric, size_t row)
{
	return values_at(device_column(device, metric), row);
}
// Whether a row has a reading of energy or power.
static inline bool device_is_metered(const struct run_device *device, size_t row)
{
	return value_ok(device_value(device, DEVICE_ENERGY, row)) ||
		value_ok(device_value(device, DEVICE_POWER, row)) ||
		value_ok(device_value(device, DEVICE_POWER_AVERAGE, row));
}
static inline struct run_values process_column(const struct run_process_samples *samples, size_t metric)
{
	return (struct run_values){samples->values[metric], samples->packed[metric]};
}
static inline int64_t process_value(const struct run_process_samples *samples, size_t metric, size_t row)
{
	return values_at(process_column(samples, metric), row);
}
// Unpacks all values of a loaded run into plain columns, for callers that pass columns on. -ENOMEM.
int run_unpack(struct run *run);

// Reads a run file (complete, growing, or left behind by a dead recorder). -ENOENT, -EINVAL (not a run file, or damaged),
// -ENOTSUP (newer schema) with a message. *ret_run is released by run_finish.
int run_load(const char *path, struct run *ret_run, struct wattle_error *reterr);
/* Loads the device data of a part of a run: facts, segments, events, and the samples from from_ns to to_ns; no processes, no
 * spans. For repeated reads of a growing file. An open segment ends at the last of those samples. */
int run_load_devices(const char *path, int64_t from_ns, int64_t to_ns, struct run *ret_run,
	struct wattle_error *reterr);
void run_finish(struct run *run);
// Value of a key in table run, or NULL.
const char *run_metadata(const struct run *run, const char *key);
double run_metadata_double(const struct run *run, const char *key); // NaN if absent
int64_t run_metadata_i64(const struct run *run, const char *key);   // VALUE_MISSING if absent
// Memory of all GPUs of the machine, measured or not: 0 without a GPU, NaN if the memory of any GPU is unknown.
double run_gpu_capacity_bytes(const struct run *run);
// The unit that the run was recorded with, by its fact: "ram_unit", "gpu_ram_unit" or "time_unit"; gpu_tracker's default if the
// fact is missing.
const char *run_unit(const struct run *run, const char *fact);
int64_t run_count_gpus(const struct run *run); // measured GPUs only
// Unix time of an instant of the run, by the clocks of the segment that contains it; VALUE_MISSING without an anchor.
int64_t run_wall_ns(const struct run *run, int64_t t_ns);
// Suspended time between two instants: how much more the clocks that run during suspend advanced. VALUE_MISSING: the value in a
// damaged file is out of range.
int64_t run_slept_ns(const struct run *run, int64_t from_ns, int64_t to_ns);

/* The profile of a run (--profile): its stacks and samples, apart from struct run, because only few outputs need them. */
struct run_profile_module {
	const char *path;
	const char *build_id; // hexadecimal; NULL unknown
	int64_t inode, size_bytes, mtime_ns; // VALUE_MISSING unknown
};
enum { RUN_PROFILE_NO_PARENT = UINT32_MAX };
struct run_profile_node { // a frame, and the stack of its callers
	uint64_t offset;
	uint32_t module, parent; // indices; the parent precedes its node
};
struct run_profile_sample {
	int64_t t_ns;
	double weight;
	int32_t tid;
	uint32_t node;
};
struct run_profile_symbol {
	uint32_t module;
	uint64_t begin, size;
	const char *name;
};
struct run_profile_data {
	const char *event; // of the last recording; NULL: the run has no profile
	int64_t hz, n_lost;
	struct run_profile_module *modules;
	size_t n_modules;
	struct run_profile_node *nodes;
	size_t n_nodes;
	struct run_profile_sample *samples; // ascending in time
	size_t n_samples;
	struct run_profile_symbol *symbols; // ascending by module and begin
	size_t n_symbols;
};
// Everything is in the arena. A run without a profile is no error: event is NULL. Errors of run_load.
int run_load_profile(const char *path, struct arena *arena, struct run_profile_data *ret_profile, struct wattle_error *reterr);
