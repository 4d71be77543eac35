/* Where batches go. A store is one file with a `const struct store_ops`; the recorder writes to one or two of them
 * (the run file; gpu_tracker's tracking file) through these four calls, once a second and at the end. */
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

struct store_fact { // a row of table run
	const char *key, *value;
};

/* The stored idle baseline of a device (--attribution active); power_w 0: none. */
struct idle_power {
	double power_w, error_w;
	double temperature_c; // NaN or 0 unknown
	char date[32];        // RFC 3339
};

/* What is known before the first sample. Borrowed for the call to open. */
struct store_header {
	const char *run_id;                     // UUID, text; the same for all segments of a file
	int64_t anchor_mono_ns, anchor_wall_ns; // the same instant on CLOCK_MONOTONIC and CLOCK_REALTIME
	int64_t anchor_boot_ns;                 // the same on CLOCK_BOOTTIME; 0 unknown
	const char *boot_id;                    // /proc/sys/kernel/random/boot_id, "" unknown
	const char *host;
	int64_t pid;                // of the root process; 0: a cgroup, or unknown
	const char *const *command; // NULL-terminated argv; for attach the target's own command line
	const char *cgroup;         // attach --cgroup: as /proc/PID/cgroup shows it; NULL: the target is a process
	int64_t interval_ns;
	bool attached;

	const struct domain *const *devices; // device i of the run; ids in the file may differ in an appended segment
	const char *const *sources;
	const struct idle_power *idle; // of each device; NULL: none is known
	size_t n_devices;

	// machine and options that reports need
	int64_t memory_total_bytes; // VALUE_MISSING unknown
	int64_t n_cores;
	int64_t expected_cores;
	int64_t n_gpus_system;                           // GPUs of the machine, also those not measured
	int64_t gpu_memory_total_bytes;                  // of all of them; 0: there is none, VALUE_MISSING unknown
	const char *ram_unit, *gpu_ram_unit, *time_unit; // "gigabytes" …
	const char *attribution;                         // "busy" or "active"
	double carbon_intensity_g_per_kwh;               // NaN: none
	double pue;                                      // 1 by default
	const char *const *meta;                         // "KEY=VALUE" …, NULL-terminated, may be NULL
	const char *label;                               // NULL: none
	const char *step;                                // the block that counts as a step; NULL: none
	const struct store_fact *facts;                  // n_facts of them: of user, machine and job
	size_t n_facts;
};

/* A process that the recorder has met. Ended ones are handed over once, with their last figures; the living ones
 * at the end with end_ns = VALUE_MISSING. */
enum { STORE_COMMAND_SIZE = 32 };
struct store_process {
	pid_t pid, ppid;
	int64_t start_ns, end_ns; // CLOCK_MONOTONIC
	int64_t cpu_ns;           // own user and system time, without children; VALUE_MISSING unknown
	int64_t max_rss_bytes;
	char command[STORE_COMMAND_SIZE]; // its short name (comm)
	bool is_main, sampled;            // sampled: seen alive by at least one sample
};

// An event that waits for the stores, with the texts that it refers to.
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

/* Spans, metrics and marks, with the names that they refer to by number. */
struct store_spans {
	const char *const *names;
	size_t n_names;
	const struct span_row *open; // not ended yet; the rows of those that end later have the same ids
	size_t n_open;
	const struct span_row *ended;
	size_t n_ended;
	const struct span_metric_row *metrics;
	size_t n_metrics;
	const struct span_mark_row *marks;
	size_t n_marks;
};

// What is handed over at a time; empty parts are zero.
struct store_delivery {
	const struct batch *batch; // NULL: no sample
	const struct store_process *processes;
	size_t n_processes;
	const struct store_event *events;
	size_t n_events;
	struct store_spans spans;
};

/* What is known after the last sample. */
struct store_footer {
	int64_t start_ns, end_ns; // the target's, CLOCK_MONOTONIC
	int64_t pid;
	int64_t exit_code;         // as wattle returns it; VALUE_MISSING for attach
	int64_t n_samples, n_lost; // ticks taken, ticks lost (not stored or missed)
	const char *cpu_method;    // "rusage", "proc", "perf task-clock" …
	int64_t main_cpu_ns, descendants_cpu_ns, referee_cpu_ns;
	int64_t processes_seen, processes_sampled;
	int64_t peak_rss_bytes, main_peak_rss_bytes;
	int64_t read_bytes, written_bytes, major_faults, minor_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t self_cpu_ns, self_max_rss_bytes, self_wakeups;
	int64_t lost_spans, unwound_spans;
	const struct update_period *periods; // of the header's devices, as they were seen; NULL: as they were
	size_t n_devices;
	/* Whether somebody waits for the end, so that what can be made later (rows out of a spool) is left as it is. Asked again
	 * and again. NULL: nobody waits. */
	bool (*is_hurried)(void *data);
	void *hurry_data;
};

struct store_open_options {
	const char *path;
	bool overwrite, append;
	mode_t mode; // of a new file, whatever the umask; 0: as the umask has it
};

struct store_ops {
	const char *name; // "run file", "tracking file": for messages
	size_t state_size;
	// Refuses (negative errno and a sentence) before anything is touched: an existing file without overwrite or
	// append, a folder that is not there, an ending that is not known. After it returns 0 the file exists.
	int (*open)(void *state, const struct store_open_options *options, const struct store_header *header,
		struct wattle_error *reterr);
	// All or nothing; on failure (disk full) nothing of the batch is in the file and it may be tried again.
	int (*write)(void *state, const struct store_delivery *delivery, struct wattle_error *reterr);
	/* Ended spans, metrics and marks that come too fast for `write`: kept in the cheapest way, and made into what write
	 * would have made of them by the end. All or nothing. NULL: the store has no spans. */
	int (*spill)(void *state, const struct store_spans *spans, struct wattle_error *reterr);
	// The last facts; marks the run complete. write may have failed before.
	int (*finish)(void *state, const struct store_footer *footer, struct wattle_error *reterr);
	// After finish: 1 if the store's file was removed or replaced under it and all of it was saved as the new file
	// `path` instead; 0 if the file is where it belongs. NULL: the store can't.
	int (*rescue)(void *state, const char *path, struct wattle_error *reterr);
	// Always called, also after a failed open; `discard`: the command never started, remove what open made.
	void (*close)(void *state, bool discard);
};

extern const struct store_ops store_run_file;      // docs/run-file.md
extern const struct store_ops store_tracking_file; // gpu_tracker's CSV or SQLite, by ending
