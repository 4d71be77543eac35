/* The interface of a store, the destination of recorded batches. A store is one file with a `const struct store_ops`. The
 * recorder writes to one or two stores (the run file; gpu_tracker's tracking file), once per second and at the end. */
#pragma once

#include "base/error.h"
#include "metric/event.h"
#include "metric/metric.h"
#include "sensor/sensor.h"
#include "span/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store_metadata { // a row of table run
	const char *key, *value;
};

/* The stored idle baseline of a device (--attribution active); power_w 0: none. */
struct idle_power {
	double power_w, error_w;
	double temperature_c; // NaN or 0 unknown
	char date[32];        // RFC 3339
};

/* Properties of the run before the first sample. Borrowed during open. */
struct store_header {
	const char *run_id;                     // UUID, text; the same for all segments of a file
	int64_t anchor_mono_ns, anchor_wall_ns; // the same instant on CLOCK_MONOTONIC and CLOCK_REALTIME
	int64_t anchor_boot_ns;                 // the same instant on CLOCK_BOOTTIME; 0 unknown
	const char *boot_id;                    // /proc/sys/kernel/random/boot_id, "" unknown
	const char *host;
	int64_t pid;                // root process; 0: a cgroup, or unknown
	const char *const *command; // NULL-terminated argv; for attach the target's own command line
	const char *cgroup;         // attach --cgroup: path as in /proc/PID/cgroup; NULL: the target is a process
	int64_t interval_ns;
	bool attached;

	const struct domain *const *devices; // device i of the run; ids in the file may differ in an appended segment
	const char *const *sources;
	const struct idle_power *idle; // of each device; NULL: no baseline
	size_t n_devices;

	// Machine properties and options for reports.
	int64_t memory_total_bytes; // VALUE_MISSING unknown
	int64_t n_cores;
	int64_t expected_cores;
	int64_t n_gpus_system;                           // GPUs of the machine, including unmeasured ones
	int64_t gpu_memory_total_bytes;                  // sum of all GPUs; 0: no GPU, VALUE_MISSING unknown
	const char *ram_unit, *gpu_ram_unit, *time_unit; // "gigabytes" …
	const char *attribution;                         // "busy" or "active"
	double carbon_intensity_g_per_kwh;               // NaN: none
	const char *carbon_region, *carbon_source;       // country of the intensity, and source; NULL: none
	int64_t carbon_year;                             // year of the intensity; 0: none
	double pue;                                      // 1 by default
	const char *const *meta;                         // "KEY=VALUE" …, NULL-terminated; may be NULL
	const char *label;                               // NULL: none
	const char *step;                                // name of the block that counts as a step; NULL: none
	const struct store_metadata *facts;              // n_metadata rows about user, machine and job
	size_t n_metadata;
};

/* A process observed by the recorder. Ended processes are delivered once, with their final values; running ones at the end of
 * the recording, with end_ns = VALUE_MISSING. */
enum { STORE_COMMAND_SIZE = 32 };
struct store_process {
	pid_t pid, ppid;
	int64_t start_ns, end_ns; // CLOCK_MONOTONIC
	int64_t cpu_ns;           // own user and system time, without children; VALUE_MISSING unknown
	int64_t max_rss_bytes;
	char command[STORE_COMMAND_SIZE]; // short name (comm)
	bool is_main, sampled;            // sampled: observed alive by at least one sample
};

// An event queued for the stores, with its texts.
enum { EVENT_DEVICE_SIZE = 144, EVENT_DETAIL_SIZE = 200 };
struct store_event {
	struct event event; // without device and detail; see store_event_get
	char device[EVENT_DEVICE_SIZE], detail[EVENT_DETAIL_SIZE]; // "": unknown
};
static inline struct event store_event_get(const struct store_event *stored)
{
	struct event event = stored->event;
	event.device = text_or_null(stored->device);
	event.detail = text_or_null(stored->detail);
	return event;
}

/* Spans, metrics and marks; they refer to names by number. */
struct store_spans {
	const char *const *names;
	size_t n_names;
	const struct span_row *open; // open spans; the rows of the ended spans later have the same ids
	size_t n_open;
	const struct span_row *ended;
	size_t n_ended;
	const struct span_metric_row *metrics;
	size_t n_metrics;
	const struct span_mark_row *marks;
	size_t n_marks;
};

/* Call stacks sampled with --profile. Modules and stack nodes are numbered from 0 in each recording; a node is a frame and the
 * stack of its callers, so that stacks share their common part. */
enum { PROFILE_BUILD_ID_SIZE = 20 };
enum { PROFILE_NO_PARENT = UINT32_MAX };
struct store_profile_module {
	const char *path; // of the file; "[kernel]", "[vdso]", "[unknown]", or the perf map of a process with generated code
	unsigned char build_id[PROFILE_BUILD_ID_SIZE];
	size_t build_id_size;                 // 0: unknown
	int64_t inode, size_bytes, mtime_ns; // of the file while it was mapped; VALUE_MISSING unknown
};
struct store_profile_node {
	uint64_t offset;         // in the module's file; an address where code is generated
	uint32_t module, parent; // parent: the caller's node; PROFILE_NO_PARENT: none
};
struct store_profile_sample { // ascending in time
	int64_t t_ns;
	uint64_t weight; // sampling period in the event's unit: ns, or cycles
	int32_t tid;
	uint32_t stack; // node of the innermost frame
};
struct store_profile_symbol { // a name of generated code
	uint32_t module;
	uint64_t begin, size;
	const char *name;
};
struct store_profile {
	const char *event; // "cycles", "cpu-clock"; with ":u", user code only. NULL: no profile
	int64_t hz;
	int64_t n_samples, n_lost; // since the start of the recording
	uint32_t first_module, first_node; // numbers of the first ones below
	const struct store_profile_module *modules;
	size_t n_modules;
	const struct store_profile_node *nodes;
	size_t n_nodes;
	const struct store_profile_sample *samples;
	size_t n_delivered;
	const struct store_profile_symbol *symbols;
	size_t n_symbols;
};

// One delivery to a store; empty parts are zero.
struct store_delivery {
	const struct batch *batch; // NULL: no sample
	const struct store_process *processes;
	size_t n_processes;
	const struct store_event *events;
	size_t n_events;
	struct store_spans spans;
	struct store_profile profile;
};

/* Results known after the last sample. */
struct store_footer {
	int64_t start_ns, end_ns; // start and end of the target, CLOCK_MONOTONIC
	int64_t pid;
	int64_t exit_code;         // exit code that wattle returns; VALUE_MISSING for attach
	int64_t n_samples, n_lost; // ticks sampled; ticks lost (not stored or missed)
	const char *cpu_method;    // "rusage", "proc", "perf task-clock" …
	int64_t main_cpu_ns, descendants_cpu_ns, referee_cpu_ns;
	int64_t processes_seen, processes_sampled;
	int64_t peak_rss_bytes, main_peak_rss_bytes;
	int64_t read_bytes, written_bytes, major_faults, minor_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t self_cpu_ns, self_max_rss_bytes, self_wakeups;
	int64_t lost_spans, unwound_spans;
	const struct update_period *periods; // observed periods of the header's devices; NULL: unchanged
	size_t n_devices;
	/* Whether finishing is urgent, so that work which can be done later (rows from a spool) is skipped. Called repeatedly.
	 * NULL: never urgent. */
	bool (*must_hurry)(void *data);
	void *must_hurry_data;
};

struct store_open_options {
	const char *path;
	bool overwrite, append;
	mode_t mode; // mode of a new file, regardless of the umask; 0: default mode with the umask
};

struct store_ops {
	const char *name; // "run file", "tracking file": for messages
	size_t state_size;
	// Refuses (negative errno and a message) before changing anything: an existing file without overwrite or append, a
	// missing folder, an unknown ending. After a return of 0 the file exists.
	int (*open)(void *state, const struct store_open_options *options, const struct store_header *header,
		struct wattle_error *reterr);
	// All or nothing; after a failure (disk full) the file contains nothing of the batch, and the call may be repeated.
	int (*write)(void *state, const struct store_delivery *delivery, struct wattle_error *reterr);
	/* For ended spans, metrics and marks that arrive too fast for `write`: stores them in the cheapest form and converts
	 * them by the end to what write would have stored. All or nothing. NULL: the store has no spans. */
	int (*spill)(void *state, const struct store_spans *spans, struct wattle_error *reterr);
	// Writes the footer and marks the run complete. An earlier write may have failed.
	int (*finish)(void *state, const struct store_footer *footer, struct wattle_error *reterr);
	// After finish: 1 if the store's file was removed or replaced and all data was saved as the new file `path` instead; 0
	// if the file is still at its path. NULL: not supported.
	int (*rescue)(void *state, const char *path, struct wattle_error *reterr);
	// Always called, also after a failed open; `discard`: the command never started, so remove what open created.
	void (*close)(void *state, bool discard);
};

extern const struct store_ops store_run_file;      // docs/run-file.md
extern const struct store_ops store_tracking_file; // gpu_tracker's CSV or SQLite, by ending
