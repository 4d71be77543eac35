/* The modules of wattle bench: bench.c has the options and the output, bench_loop.c the order of the runs, bench_run.c one run,
 * bench_wait_stable.c the wait before a run, bench_signals.c the signals. docs/bench.md describes the method. */
#pragma once

#include "base/env.h"
#include "cli/command.h"
#include "energy/track.h"
#include "report/bench.h"
#include "sensor/sensor.h"

#include <signal.h>
#include <sys/types.h>

enum { BENCH_MIN_RUNS = 5 }; // minimum before --until may stop: fewer runs give no useful interval

struct bench_options {
	const char *json, *output, *stable_wait, *compare;
	int64_t runs, warmup, max_runs, seed, interval_ns; // runs and seed: VALUE_MISSING if not given
	double until_percent;                              // NaN: not given
	bool show_output, ignore_failure, quiet;
};

/* ---- bench_signals.c ---- SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and read where the bench waits anyway: no operation
 * is interrupted, and no flag is shared with a handler. */
struct bench_signals {
	sigset_t taken, original_mask;
	int stopped_by; // the signal that requested the end; 0: none
};
void bench_signals_take(struct bench_signals *signals);
void bench_signals_restore(const struct bench_signals *signals);
// Sleeps until ns have passed or a signal requests the end; returns false then. 0 ns: only checks.
bool bench_pause(struct bench_signals *signals, int64_t ns);
// Waits until the child has ended. Signals that did not come from the terminal are forwarded; the child receives the terminal's
// anyway.
int bench_wait(struct bench_signals *signals, pid_t pid); // returns its status as from waitpid

/* ---- bench_run.c ---- */
// Creates a temporary folder NAME-XXXXXX. ret_folder is "" on failure and after bench_folder_remove, which also removes its
// files.
int bench_folder_make(const char *name, char *ret_folder, size_t size, struct wattle_error *reterr);
void bench_folder_remove(char *folder);
// Escapes "%" in a path, because --output interprets patterns.
void bench_escape_pattern(const char *path, char *out, size_t size);

enum bench_outcome {
	BENCH_RAN,
	BENCH_STOPPED, // ended by a signal to the bench: its measurements are not used
	BENCH_BROKEN   // wattle run itself failed; the error has the reason
};

struct bench_run {
	double values[BENCH_QUANTITIES];
	double energy_error_j;
	int status; // status of the command, 128+N for a signal
	char provenance[16], meter[200];
};

struct bench_runner {
	const struct bench_options *options; // borrowed
	struct bench_signals *signals;       // borrowed
	char folder[256];                    // temporary: run file, report, standard error of the command
};
int bench_runner_open(struct bench_runner *runner, const struct bench_options *options, struct bench_signals *signals,
	struct wattle_error *reterr);
void bench_runner_close(struct bench_runner *runner);
// Runs a command under `wattle run` in a separate process. keep: path to save the run file at; NULL: not saved.
enum bench_outcome bench_run(const struct bench_runner *runner, char *const *argv, const char *keep,
	struct bench_run *ret_run, struct wattle_error *reterr);
// The last output of the last run on standard error; "" if none was captured.
void bench_last_output(const struct bench_runner *runner, struct buf *out);
// 0, EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE: the result that execvp would have.
int bench_find_command(const char *command);

/* ---- bench_wait_stable.c ---- */
struct bench_stable_wait {
	struct wattle_env env;
	struct sensor_set sensors;
	bool env_is_open, sensors_are_open;
	struct energy_track *tracks;   // owned; one per device
	int64_t (*rows)[DEVICE_COUNT]; // owned
	int64_t window_ns;             // time over which mean power is measured
	struct bench_stability figures;
};
// text: "auto", "0" or a duration. -EINVAL with a message.
int bench_stable_parse(const char *text, double *ret_limit_s, struct wattle_error *reterr);
int bench_stable_open(struct bench_stable_wait *stable_wait, double limit_s, struct bench_signals *signals,
	struct wattle_error *reterr);
void bench_stable_close(struct bench_stable_wait *stable_wait);
// Waits until temperature and power are close to their initial values, within limits. last_run_s: duration of the previous run.
void bench_wait_until_stable(struct bench_stable_wait *stable_wait, struct bench_signals *signals, double last_run_s);

/* ---- bench_loop.c ---- */
struct bench_loop {
	const struct bench_options *options;   // borrowed
	const struct bench_runner *runner;     // borrowed
	struct bench_signals *signals;         // borrowed
	struct bench_stable_wait *stable_wait; // borrowed
	struct bench_result *result;           // borrowed; receives rounds, end, series, width, meter …
	double *values;                        // owned: [command][quantity][round]
	double *errors_j;                      // owned: [command][round]
	uint32_t *order;                       // owned: order of the commands in this round
	size_t min_rounds, max_rounds;
	double last_run_s;
	char provenance[16], meter[200]; // from the first run with energy
	bool shows_progress;
};
int bench_loop_open(struct bench_loop *loop, struct wattle_error *reterr); // the caller has set the borrowed members
void bench_loop_close(struct bench_loop *loop);
// Runs warm-up and rounds. EXIT_DONE, EXIT_FAILED with a message on stderr, or 128+N; the result contains the complete rounds.
int bench_loop_run(struct bench_loop *loop);
// Median uncertainty of the meter; NaN unknown.
double bench_loop_error_j(const struct bench_loop *loop, size_t command);
