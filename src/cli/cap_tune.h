/* The modules of wattle cap tune: cap_tune.c has the control flow, cap_tune_options.c the options, cap_tune_devices.c the
 * limited devices, cap_tune_recorder.c the child that measures, cap_tune_steps.c the amount of work done, cap_tune_wait_stable.c the
 * wait for steady power, cap_tune_window.c one window, cap_tune_search.c all windows, cap_tune_output.c the messages.
 * docs/caps.md. */
#pragma once

#include "base/env.h"
#include "cap/lease.h"
#include "cap/tune/meter.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "report/cap_report.h"
#include "sensor/sensor.h"
#include "store/follow.h"
#include "store/run.h"

enum { TUNE_DEVICES = 32, TUNE_LIMITS = 64 };

struct cap_tune_options {
	const char *objective, *step, *metric, *metric_total, *spans, *json, *csv, *html, *output;
	int64_t n_limits, pid, seed, interval_ns, timeout_ns;  // pid, seed: VALUE_MISSING if not given
	double from_percent, seconds, settle_s;                // settle_s: NaN: wait until power is steady
	bool apply, nvtx, itt, each, clocks, quiet;
	enum tune_goal goal; // parsed from `objective`
	double slowdown_percent;
	char *const *command; // NULL: a running process, pid
};

/* ---- cap_tune_options.c ---- */
enum { CAP_TUNE_OPTIONS = 23 };
extern const struct option cap_tune_option_table[CAP_TUNE_OPTIONS];
// Sets defaults, then parses the options. False: stop; *ret_status is set and a message was printed.
bool cap_tune_parse(const struct command *command, int argc, char **argv, struct cap_tune_options *options,
	const char **ret_device, int *ret_status);

/* ---- cap_tune_devices.c ---- */
struct tune_device {
	struct cap_device *cap; // owned by the device list
	size_t sensor;          // index of the device in sensors.devices
	struct cap_hold *hold;  // owned; NULL: none
	double previous;        // W or MHz; NaN unknown
};

struct tune_devices {
	struct wattle_env env;
	struct sensor_set sensors;
	struct cap_devices caps;
	bool env_is_open, sensors_are_open, caps_are_open;
	struct cap_holder holder;
	struct cap_guard *guard; // owned by the leases; shared by all devices
	struct tune_device at[TUNE_DEVICES];
	size_t n;
};
// Opens all devices in `words`: "gpu-0", "gpu-0,gpu-1", "gpus". Changes nothing. Errors have a message.
int tune_devices_open(struct tune_devices *devices, const char *words, enum cap_kind what, struct wattle_error *reterr);
void tune_devices_close(struct tune_devices *devices); // restores limits that are still held

const struct run_device *tune_device_of(const struct run *run, const struct domain *domain); // NULL: not measured

/* Devices that share one limit. */
struct tune_group {
	struct tune_devices *devices; // borrowed
	size_t first, n;
	char name[200];
	double min, max, default_;  // range accepted by all devices
	double set;                 // limit set now; NaN: none yet
	double limits[TUNE_LIMITS]; // limits to measure, descending
	size_t n_limits;
};
// -ERANGE with a message: there is no choice of limits.
int tune_group_make(struct tune_group *group, struct tune_devices *devices, size_t first, size_t n,
	const struct cap_tune_options *options, struct wattle_error *reterr);
int tune_group_acquire(struct tune_group *group, struct wattle_error *reterr); // takes all leases or none
// Sets a trial limit that differs from the current one, to learn before a program starts whether the devices accept limits.
int tune_group_try(struct tune_group *group, struct wattle_error *reterr);
double tune_group_rounded(const struct tune_group *group, double value); // the value to which the devices round it
int tune_group_set(struct tune_group *group, double value, struct wattle_error *reterr);
// 0, 1: another process has changed a limit, -ENODEV: a device is gone; with a message. Also restarts guards.
int tune_group_check(struct tune_group *group, struct wattle_error *reterr);
// Restores the previous limits or, with keep, leaves the current limit. A limit changed by another process is reported on
// stderr.
int tune_group_end(struct tune_group *group, bool keep, struct wattle_error *reterr);

/* ---- cap_tune_recorder.c ---- */
struct tune_recorder {
	const struct cap_tune_options *options; // borrowed
	struct bench_signals *signals;          // borrowed
	char folder[256], path[4096];           // folder: temporary, or ""; path: the run file
	pid_t pid;                              // 0: not running
	int status;                             // status of the last child that ended, as wattle returns it
	size_t n_started;
	int64_t started_ns;
};
int tune_recorder_open(struct tune_recorder *recorder, const struct cap_tune_options *options,
	struct bench_signals *signals, struct wattle_error *reterr);
void tune_recorder_close(struct tune_recorder *recorder); // call after the child has ended
int tune_recorder_start(struct tune_recorder *recorder, struct wattle_error *reterr);
bool tune_recorder_has_ended(struct tune_recorder *recorder);
void tune_recorder_signal(const struct tune_recorder *recorder, int signal);
// Waits until the child has ended, and forwards signals that do not come from the terminal.
void tune_recorder_wait(struct tune_recorder *recorder);

/* ---- cap_tune_steps.c ---- */
struct tune_steps {
	struct step_tail tail;
	char path[4096]; // file with the steps
	bool is_span_file, is_metric, is_total, whole_runs;
};
// Finds the source of the program's steps. -EINVAL with a message that states the remedy.
int tune_steps_open(struct tune_steps *steps, const struct cap_tune_options *options,
	const struct tune_recorder *recorder, struct wattle_error *reterr);
void tune_steps_close(struct tune_steps *steps);
void tune_steps_begin(struct tune_steps *steps);                            // call when the recorder is started again
int tune_steps_poll(struct tune_steps *steps, struct wattle_error *reterr); // -ENOENT: no file yet

struct tune_step_interval { // from the end of one step to the end of a later step
	int64_t from_ns, to_ns;
	double steps; // number of steps; for a metric, the sum that it reported
	size_t ends;  // number of step ends, without the first one
};
/* The longest interval from the first step end at or after since_ns to the last step end within length_ns, or to the `least`-th
 * step end if that is later. False: no step yet. */
bool tune_steps_interval(const struct tune_steps *steps, int64_t since_ns, int64_t length_ns, size_t least,
	struct tune_step_interval *ret_interval);
void tune_steps_names(const struct tune_steps *steps, char *out, size_t size);

/* ---- cap_tune_search.c ---- */
enum tune_event { // result of a wait or a window
	TUNE_GOES_ON,
	TUNE_STOPPED, // by a signal to wattle
	TUNE_ENDED,   // the command has ended
	TUNE_FAILED,  // the command failed
	TUNE_CHANGED, // another process changed the limit
	TUNE_BROKEN   // see search->error
};

struct tune_search {
	const struct cap_tune_options *options; // borrowed, as are the next four members
	struct tune_group *group;
	struct tune_recorder *recorder;
	struct tune_steps *steps;
	struct bench_signals *signals;
	int signal_fd;                    // owned by cap_tune.c
	struct tune_meter meter;          // owned: of the group's devices; used while power settles
	struct cap_tune_report *report;   // borrowed: notes and result
	struct tuner *tuner;              // owned
	int64_t start_ns, steady_ns;      // steady_ns: start of steady power under the current limit
	int64_t set_ns;                   // time of the last change of the limit
	struct tune_steady steady;        // learned response time of the devices to a new limit
	bool exceeds;                     // devices exceed the limit at the start of runs although it has long been in effect
	double longest_step_s, waited_s;  // over all windows so far
	size_t n_windows, n_stable, n_unstable, runs_without_window;
	double measured_s, scale_error;
	bool from_power;
	bool shows_progress, is_line_shown, saw_thermal,
		is_from_terminal; // origin of the signal that stopped wattle: the terminal sends it to the command, too
	struct wattle_error error;
};
int tune_search_open(struct tune_search *search); // the caller has set the borrowed members. -ENOMEM with search->error
void tune_search_close(struct tune_search *search);
// Measures windows until the result is certain enough. The report contains the results for every kind of end.
enum tune_event tune_search_run(struct tune_search *search, struct arena *arena);

/* ---- cap_tune_wait.c ---- */
// Sleeps until a time of CLOCK_MONOTONIC, or until another event occurs.
enum tune_event tune_wait(struct tune_search *search, int64_t until_ns);

/* ---- cap_tune_wait_stable.c ---- */
// Waits until the limit is in effect and power is steady, or for the time of --settle.
enum tune_event tune_wait_until_stable(struct tune_search *search);
/* Whether a whole run began before the limit was in effect, so that it must be repeated: its device drew more than the limit at
 * first. For a device that idles between runs this cannot be detected earlier. */
bool tune_began_early(struct tune_search *search, const struct run *run, const struct tune_step_interval *interval);

/* ---- cap_tune_window.c ---- */
enum tune_event tune_measure(struct tune_search *search, size_t limit, double seconds, struct tune_window *ret_window);

/* ---- cap_tune_output.c ---- */
void tune_show_progress(struct tune_search *search, const char *doing);
void tune_clear_progress(struct tune_search *search);
void tune_print_window(struct tune_search *search, const struct tune_window *window);
