/* The modules of wattle sensors. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fields.h"
#include "energy/counter.h"
#include "metric/metric.h"
#include "sensor/sensor.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The data of `wattle sensors`: a row for every domain, whether used, superseded, hidden or missing, and their meaning for a
 * run on this machine. */

struct sensors_report_row {
	const char *sensor;
	const struct domain *domain; // owned by the sensor set, or doctor.missing
	const struct idle_power *idle; // stored baseline; NULL: none
	struct update_period period;   // declared by the sensor, or observed
	double last;                   // last reading; NaN: none
	const char *last_unit;         // "J" or "W"; NULL: none
};

enum sensors_report_state { SENSORS_REPORT_USED, SENSORS_REPORT_NOT_USED, SENSORS_REPORT_UNREADABLE };

struct sensors_report {
	struct sensor_set set;
	struct update_period *periods; // owned, per device
	struct idle_power *idle;       // owned, per device
	struct domain missing;   // powercap row, if the sensor itself has none
	struct sensors_report_row *rows; // owned
	size_t n_rows;
	char baseline_note[200]; // why a stored baseline is not used; "": it is used, or there is none
	bool is_open;
};

// Opens all sensors as `wattle run` would in this environment, and observes their counters for up to about 1.5 s.
int sensors_report_open(struct sensors_report *report, const struct wattle_env *env, struct wattle_error *reterr);
void sensors_report_close(struct sensors_report *report);

enum sensors_report_state doctor_state(const struct domain *domain);
// Whether the total of a run includes this domain.
bool sensors_report_in_total(const struct sensors_report *report, const struct domain *domain);
// Whether any sampled domain is better than an estimate and has returned a reading.
bool sensors_report_measures(const struct sensors_report *report);
/* A command that makes an unreadable sensor readable permanently, if `remedy` holds until the next boot only; NULL: the remedy
 * is permanent, or there is none. */
const char *sensors_report_permanent_remedy(const struct sensors_report_row *row);

// sensors_report_verdict.c: sentences without line breaks; sensors_report_idle_power may write nothing.
void sensors_report_verdict(const struct sensors_report *report, struct buf *text);
void sensors_report_idle_power(const struct sensors_report *report, struct buf *text);
void sensors_report_calibration(const struct sensors_report *report,
	struct buf *text); // about GPUs; nothing if none is measured

// sensors_report_json.c, sensors_report_text.c
extern const struct object_type sensors_type; // data: struct sensors_report
void sensors_report_json(const struct sensors_report *report, struct buf *out);
void sensors_report_text(const struct sensors_report *report, struct buf *out);

/* sensors_report_missing.c: why a machine has no powercap zone. False: the CPU has no such counters, so there is nothing to explain. */
bool sensors_report_explain_powercap(const struct wattle_env *env, struct domain *ret_domain);

/* The idle power of each domain, measured while the machine was verifiably idle and stored in the state folder as idle.json:
 *
 *	{"schema": "wattle-idle/1", "host": "…", "date": "2026-01-31T12:00:00Z", "temperature_c": 38,
 *	 "domains": [{"domain", "source", "device", "uuid", "idle_w", "error_w", "seconds", "temperature_c", "date"}…]}
 *
 * `host` is a hash that distinguishes machines without naming them. The outer date and temperature_c are those of the last
 * calibration; a domain that it did not measure keeps its older values. */

enum { IDLE_BASELINE_MAX = 256, IDLE_BASELINE_DAYS = 90 };

struct idle_entry {
	char domain[48], source[16], device[96], uuid[96];
	char date[32]; // RFC 3339, UTC
	double idle_w, error_w, seconds;
	double temperature_c; // NaN unknown
};

struct idle_baseline {
	char host[20];
	char date[32];        // date of the last calibration
	double temperature_c; // at the last calibration; NaN unknown
	struct idle_entry *entries;
	size_t n;
	struct arena *arena; // owns the entries
};

extern const struct object_type idle_baseline_type;

// Path of the file: env->state_dir/idle.json. False if the path is too long.
bool idle_baseline_path(const struct wattle_env *env, char *ret_path, size_t size);
// -ENOENT: none is stored; -EINVAL with a message: the file is invalid. *ret_baseline is always valid.
int idle_baseline_load(const struct wattle_env *env, struct idle_baseline *ret_baseline, struct wattle_error *reterr);
// Replaces entries of the same domain, source, device and uuid, keeps the others, and writes the file atomically; entries of
// another machine are dropped.
int idle_baseline_store(const struct wattle_env *env, const struct idle_entry *entries, size_t n,
	struct wattle_error *reterr);
int idle_baseline_folder(const struct wattle_env *env, struct wattle_error *reterr); // creates the state folder
void idle_baseline_finish(struct idle_baseline *baseline);

void idle_baseline_host(char *ret_host, size_t size); // hash that identifies this machine
void idle_baseline_date(int64_t wall_ns, char *ret_date, size_t size);

/* Fills the stored idle power of each device of the set into an array with space for all; devices without one are not changed.
 * If a stored baseline does not apply (too old, another machine, invalid file), ret_note is the reason, otherwise "". Returns
 * the number of domains with a value. */
size_t idle_baseline_of(const struct wattle_env *env, const struct sensor_set *set, struct idle_power *ret_idle,
	char *ret_note, size_t size);

/* One domain during a period of idleness: its mean power, the uncertainty, and whether it was constant. Pure: no clock, no
 * file. */

enum { IDLE_WINDOWS_MAX = 3600 };

struct idle_edge { // an update of the counter
	int64_t t_ns;
	double energy_j;
	double blur_s; // the update happened within this time before t_ns
};

struct idle_monitor {
	const struct domain *domain; // borrowed
	struct counter counter;
	bool has_edge;
	struct idle_edge first, last, window_start;
	int64_t last_poll_ns;
	double power_sum_w, temperature_sum_c; // sums over the current window, and over all windows
	size_t n_powers, n_temperatures;
	double windows_w[IDLE_WINDOWS_MAX]; // mean power per window; NaN: no update in the window
	size_t n_windows;
	bool was_reset; // the counter was reset: earlier readings do not count
};

struct idle_result {
	double idle_w, error_w; // error_w: half of a 95 % interval
	double seconds;
	double temperature_c;       // NaN unknown
	double lowest_w, highest_w; // extremes over the windows
};

void idle_monitor_init(struct idle_monitor *watch, const struct domain *domain, int64_t t_ns);
// values: a row of the set; power and temperature are used if available.
void idle_monitor_feed(struct idle_monitor *watch, int64_t t_ns, const int64_t values[DEVICE_COUNT]);
void idle_monitor_end_window(struct idle_monitor *watch);
// False if the counter never changed, so that there is no result.
bool idle_monitor_result(const struct idle_monitor *watch, struct idle_result *ret_result);
// Whether the power of the windows so far varied no more than an idle domain's does.
bool idle_monitor_is_steady(const struct idle_monitor *watch, struct idle_result *ret_result);

/* Processes that used the CPU during an interval: the difference of two readings of /proc. */

struct busy_process {
	pid_t pid;
	uint64_t start_ticks;
	int64_t cpu_ns;
	char name[32];
};

struct busy_processes {
	struct busy_process *all; // owned; ascending by pid
	size_t n, capacity;
};

// Unreadable processes are skipped; never fails.
void busy_processes_read(struct busy_processes *processes, const struct wattle_env *env);
void busy_processes_finish(struct busy_processes *processes);
// Writes "cc1plus (4711), python3 (99)": the processes with the highest CPU time between the two readings, at most three, each
// with at least a tenth of the first one's; without wattle itself. Nothing if none used CPU time.
void busy_processes_name(const struct busy_processes *before, const struct busy_processes *after, struct buf *out);

/* wattle sensors --calibrate-idle: the idle power of every measured domain, stored only if the machine was idle throughout. */

/* Needs `seconds` of uninterrupted idleness and waits for it up to three times as long; prints on stdout what was stored, or on
 * stderr what is busy. EXIT_DONE or EXIT_FAILED. */
int calibrate_idle(const struct wattle_env *env, double seconds);

/* The calibration of a GPU's power sensor from phases: idle, loaded, idle, loaded … idle. Pure: no clock, no file.
 *
 * Each loaded phase is compared with the mean of the two idle phases around it, so that slow drift (temperature, fans) cancels.
 * For a meter before the power supply,
 *
 *	efficiency · Δwall = factor · Δgpu + Δothers
 *
 * where Δothers is the additional power of packages, memory and the other GPUs. A meter in the supply lines of the card alone
 * (efficiency 1, without error) measures the card only. The factor is the mean over the loaded phases. Its error (half of a
 * 95 % interval) is the root of the sum of the squares of
 *
 *	scatter     Student's 95 % limit of the mean over the phases
 *	efficiency  its stated error
 *	others      10 % of the additional power by counters; the load model's error where power is estimated
 *	meter       1 % of the difference: the tolerance of a class 1 wall meter
 *	offset      3 W of the GPU's reading, which a difference cancels and a factor cannot correct */

enum { GPU_FIT_CYCLES = 4, GPU_FIT_PHASES = 2 * GPU_FIT_CYCLES + 1 }; // the first and the last phase are idle

struct gpu_phase {
	double wall_w, gpu_w;          // as read from the meters
	double others_w, others_error; // all other domains; relative error of their change
};

struct gpu_supply {
	double efficiency, error; // defaults 0.91, 0.05; error 0: the meter is after the supply, on the card alone
};

struct gpu_fit {
	double factor, error;                              // relative error
	double delta_w;                                    // difference of the GPU's reading between loaded and idle
	double scatter, efficiency, others, meter, offset; // components of the relative error
};

// -ERANGE with the reason: the phases do not allow a calibration.
int gpu_fit_make(const struct gpu_phase phases[GPU_FIT_PHASES], const struct gpu_supply *supply,
	struct gpu_fit *ret_fit, struct wattle_error *reterr);

/* wattle sensors --calibrate-gpu INDEX --wall-meter FILE -- CMD: the factor of a GPU's power sensor relative to an external
 * meter, stored in the state folder (sensor/gpu_gain.h). CMD, which loads the GPU, is started and ended four times, with
 * idle phases before, between and after. */

struct calibrate_gpu {
	int index;
	const char *wall_meter;
	struct gpu_supply supply;
	double seconds; // duration of a phase, without the time ignored after each change
	char *const *argv;
};

// Parses "92±2", as for --gpu-gain; 100: the meter is on the card alone. -EINVAL with a message.
int calibrate_gpu_supply(const char *text, struct gpu_supply *ret_supply, struct wattle_error *reterr);
// Returns an exit status.
int calibrate_gpu(const struct wattle_env *env, const struct calibrate_gpu *how);

/* Replaces identifiers of a machine or its parts (serial numbers, UUIDs, MAC addresses, host name) by numbers in order of
 * appearance: the same number for the same identifier within a capture, and not reversible. */

enum anonymize_kind { PSEUDONYM_HOST, PSEUDONYM_UUID, PSEUDONYM_MAC, PSEUDONYM_SERIAL, PSEUDONYM_KINDS };

struct anonymizer {
	struct pseudonym {
		enum anonymize_kind kind;
		unsigned number; // from 1, per kind
		char *original;  // owned
	} * all;                 // owned
	size_t n, capacity;
	char host[256]; // "" none
};

void anonymizer_init(struct anonymizer *anonymizer, const char *host);
void anonymizer_finish(struct anonymizer *anonymizer);
// Writes the pseudonym of a whole word; for SERIAL it has as many digits as the word has characters.
void anonymize_put(struct anonymizer *anonymizer, enum anonymize_kind kind, const char *word, size_t length,
	struct buf *out);
// Copies the text with UUIDs and MAC addresses replaced; with_host: also the host name where it is a separate word.
void anonymize_scrub(struct anonymizer *anonymizer, const char *text, size_t size, bool with_host, struct buf *out);
// Whether the text contains a MAC address: device names with one are omitted.
bool anonymize_has_mac(const char *text);

/* Copies selected files of one root (/sys or /proc) to a folder of the same structure: a symbolic link on the way to a file is
 * copied as a link, and its target as a folder. Nothing outside of the root is followed or read. */

struct capture_tree {
	const char *name; // "sys": name of the folder
	int root_fd;      // borrowed
	int out_fd;       // owned: output folder
	struct anonymizer *anonymizer;
	struct buf *unreadable; // one line per file: "sys/path<TAB>mode<TAB>reason"
	size_t n_files, n_bytes, n_links, n_unreadable, n_left_out;
};

// Changes the contents of a file before it is saved.
typedef void (*capture_filter)(struct anonymizer *anonymizer, const char *text, size_t size, struct buf *out);

/* Selects all files that match `folder`/`file`, both shell patterns. `sleeper`: file below `folder` with the runtime power
 * status of a device that a read would wake; NULL: none. `filter` NULL: identifiers of the machine are replaced. `wanted` NULL:
 * all folders. */
struct capture_request {
	const char *folder, *file, *power_status_file;
	capture_filter filter;
	bool (*wanted)(int root_fd, const char *folder);
};
void capture_tree_add(struct capture_tree *tree, const struct capture_request *request);

/* The NVML values of this machine's GPUs, as a card file for the fake library (tests/fakes/nvml/README.md). */

// Returns the number of GPUs described; 0 without library, driver or GPU.
size_t capture_nvml(const struct wattle_env *env, struct anonymizer *anonymizer, struct buf *out);

/* wattle sensors --capture DIR: saves this machine as a tree for tests, without identifiers. */

// Prints on stdout what was saved. EXIT_DONE, or EXIT_FAILED with a message.
int capture_machine(const struct wattle_env *env, const char *folder);
