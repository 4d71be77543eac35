/* wattle cap tune, in parts: cap_tune.c has the order of things, cap_tune_options.c what can be asked for, cap_tune_devices.c what is limited,
 * cap_tune_recorder.c the child that measures, cap_tune_steps.c how much work was done, cap_tune_settle.c when power is
 * steady, cap_tune_window.c one window, cap_tune_search.c all of them, cap_tune_output.c what is told. docs/caps.md. */
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
	int64_t n_limits, pid, seed, interval_ns, patience_ns; // pid, seed: VALUE_MISSING if not given
	double from_percent, seconds, settle_s;                // settle_s: NaN: until power is steady
	bool apply, nvtx, itt, each, clocks, quiet;
	enum tune_goal goal; // what `objective` says
	double slowdown_percent;
	char *const *command; // NULL: pid
};

/* ---- cap_tune_options.c ---- */
enum { CAP_TUNE_OPTIONS = 23 };
extern const struct option cap_tune_option_table[CAP_TUNE_OPTIONS];
// Defaults, then what is given. False, with *ret_status and after a message: nothing is to be done.
bool cap_tune_parse(const struct command *command, int argc, char **argv, struct cap_tune_options *options,
	const char **ret_device, int *ret_status);

/* ---- cap_tune_devices.c ---- */
struct tune_device {
	struct cap_device *cap; // the devices' own
	size_t sensor;          // its place among sensors.devices
	struct cap_hold *hold;  // owned; NULL: none
	double previous;        // W or MHz; NaN unknown
};

struct tune_devices {
	struct wattle_env env;
	struct sensor_set sensors;
	struct cap_devices caps;
	bool env_is_open, sensors_are_open, caps_are_open;
	struct cap_holder holder;
	struct cap_guard *guard; // of all of them; the leases' own
	struct tune_device at[TUNE_DEVICES];
	size_t n;
};
// All that `words` names: "gpu-0", "gpu-0,gpu-1", "gpus". Nothing is changed. With a sentence.
int tune_devices_open(struct tune_devices *devices, const char *words, enum cap_what what, struct wattle_error *reterr);
void tune_devices_close(struct tune_devices *devices); // limits that are still held come back

const struct run_device *tune_device_of(const struct run *run, const struct domain *domain); // NULL: not measured

/* Some of the devices, under one limit. */
struct tune_group {
	struct tune_devices *devices; // borrowed
	size_t first, n;
	char name[200];
	double min, max, default_;  // what all of them take
	double set;                 // NaN: nothing yet
	double limits[TUNE_LIMITS]; // to be tried, descending
	size_t n_limits;
};
// -ERANGE with a sentence: there is nothing to choose from.
int tune_group_make(struct tune_group *group, struct tune_devices *devices, size_t first, size_t n,
	const struct cap_tune_options *options, struct wattle_error *reterr);
int tune_group_hold(struct tune_group *group, struct wattle_error *reterr); // all or none
// Sets a limit other than the one there was: whether the devices take any is known before a program starts.
int tune_group_try(struct tune_group *group, struct wattle_error *reterr);
double tune_group_taken(const struct tune_group *group, double value); // what the devices make of it
int tune_group_set(struct tune_group *group, double value, struct wattle_error *reterr);
// 0, 1: somebody has changed one, -ENODEV: one is gone; with a sentence. Also looks after the guards.
int tune_group_check(struct tune_group *group, struct wattle_error *reterr);
// What was there before comes back, or (keep) the limit stays. Sentences that people should know go to `tell`.
int tune_group_end(struct tune_group *group, bool keep, struct wattle_error *reterr);

/* ---- cap_tune_recorder.c ---- */
struct tune_recorder {
	const struct cap_tune_options *options; // borrowed
	struct bench_signals *signals;          // borrowed
	char folder[256], path[4096];           // folder: temporary, ""; path: of the run file
	pid_t pid;                              // 0: none runs
	int status;                             // of the last one that ended, as wattle returns it
	size_t n_started;
	int64_t started_ns;
};
int tune_recorder_open(struct tune_recorder *recorder, const struct cap_tune_options *options,
	struct bench_signals *signals, struct wattle_error *reterr);
void tune_recorder_close(struct tune_recorder *recorder); // the child has ended
int tune_recorder_start(struct tune_recorder *recorder, struct wattle_error *reterr);
bool tune_recorder_has_ended(struct tune_recorder *recorder);
void tune_recorder_signal(const struct tune_recorder *recorder, int signal);
// Until it has ended, passing on signals that do not come from the terminal.
void tune_recorder_wait(struct tune_recorder *recorder);

/* ---- cap_tune_steps.c ---- */
struct tune_steps {
	struct live live;
	char path[4096]; // where they stand
	bool is_span_file, is_metric, is_total, whole_runs;
};
// Where the steps of the program are to be had from. -EINVAL with a sentence that says what to do.
int tune_steps_open(struct tune_steps *steps, const struct cap_tune_options *options,
	const struct tune_recorder *recorder, struct wattle_error *reterr);
void tune_steps_close(struct tune_steps *steps);
void tune_steps_begin(struct tune_steps *steps);                            // the recorder starts anew
int tune_steps_look(struct tune_steps *steps, struct wattle_error *reterr); // -ENOENT: nothing there yet

struct tune_stretch { // from the end of one step to the end of another
	int64_t from_ns, to_ns;
	double steps; // in it; of a metric what it says was done
	size_t ends;  // ends of steps in it, the first one not counted
};
/* The longest stretch from the first step that ended at or after since_ns to the last one at most `length_ns` later, or to
 * the `least`th one if that is later. False: there was no step yet. */
bool tune_steps_stretch(const struct tune_steps *steps, int64_t since_ns, int64_t length_ns, size_t least,
	struct tune_stretch *ret_stretch);
void tune_steps_names(const struct tune_steps *steps, char *out, size_t size);

/* ---- cap_tune_search.c ---- */
enum tune_event { // how a wait or a window ended
	TUNE_GOES_ON,
	TUNE_STOPPED, // by a signal to us
	TUNE_ENDED,   // the command is over
	TUNE_FAILED,  // the command failed
	TUNE_CHANGED, // somebody else changed the limit
	TUNE_BROKEN   // the error says it
};

struct tune_search {
	const struct cap_tune_options *options; // borrowed, as are the next four
	struct tune_group *group;
	struct tune_recorder *recorder;
	struct tune_steps *steps;
	struct bench_signals *signals;
	int signal_fd;                    // owned by cap_tune.c
	struct tune_meter meter;          // owned: of the group's devices, while power settles
	struct cap_tune_report *report;   // borrowed: notes, result
	struct tuner *tuner;              // owned
	int64_t start_ns, steady_ns;      // steady_ns: the limit is what it is, and power with it, since then
	int64_t set_ns;                   // when the limit was changed last
	struct tune_steady steady;        // how quickly the devices follow their limits
	bool exceeds;                     // at the begin of runs they draw more than the limit that has acted for long
	double longest_step_s, settled_s; // seen so far
	size_t n_windows, n_settled, n_unsettled, fruitless_runs;
	double measured_s, scale_error;
	bool from_power;
	bool shows_progress, line_stands, saw_thermal,
		is_from_terminal; // the signal that stopped us: the command has it too
	struct wattle_error error;
};
int tune_search_open(struct tune_search *search); // the borrowed ones are set. -ENOMEM with search->error
void tune_search_close(struct tune_search *search);
// Measures until enough is known. What was found stands in the report, whichever way it ended.
enum tune_event tune_search_run(struct tune_search *search, struct arena *arena);

/* ---- cap_tune_wait.c ---- */
// Sleeps until a time of CLOCK_MONOTONIC, unless something else happens first.
enum tune_event tune_wait(struct tune_search *search, int64_t until_ns);

/* ---- cap_tune_settle.c ---- */
// Until the limit acts and power is steady, or as long as --settle says.
enum tune_event tune_settle(struct tune_search *search);
/* Whether a whole run began before the limit acted, so that it has to be repeated: its device drew more than the limit at
 * first. A device that rests between runs shows this no sooner. */
bool tune_began_early(struct tune_search *search, const struct run *run, const struct tune_stretch *stretch);

/* ---- cap_tune_window.c ---- */
enum tune_event tune_measure(struct tune_search *search, size_t limit, double seconds, struct tune_window *ret_window);

/* ---- cap_tune_output.c ---- */
void tune_show_progress(struct tune_search *search, const char *doing);
void tune_clear_progress(struct tune_search *search);
void tune_tell_window(struct tune_search *search, const struct tune_window *window);
