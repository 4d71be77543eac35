/* wattle bench, in parts: bench.c has the options and what is printed, bench_loop.c the order of the runs, bench_run.c one
 * run, bench_settle.c the wait before it, bench_signals.c who interrupts. docs/bench.md tells the method. */
#pragma once

#include "base/env.h"
#include "cli/command.h"
#include "report/bench.h"
#include "energy/track.h"
#include "sensor/sensor.h"

#include <signal.h>
#include <sys/types.h>

enum { BENCH_LEAST_RUNS = 5 }; // before --until may stop: fewer have no interval worth the name

struct bench_options {
	const char *json, *output, *settle, *compare;
	int64_t runs, warmup, max_runs, seed, interval_ns; // runs and seed: VALUE_MISSING if not given
	double until_percent;                              // NaN: not given
	bool show_output, ignore_failure, quiet;
};

/* ---- bench_signals.c ----
 * SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and taken where the bench waits anyhow: nothing is interrupted
 * half-way, and no flag is shared with a handler. */
struct bench_signals {
	sigset_t taken, original_mask;
	int stopped_by; // the signal that asked to end; 0: none
};
void bench_signals_take(struct bench_signals *signals);
void bench_signals_restore(const struct bench_signals *signals);
// Sleeps, less if a signal asks to end; false then. 0 ns: only looks.
bool bench_pause(struct bench_signals *signals, int64_t ns);
// Until the child has ended; signals that did not come from the terminal, which reach it anyway, are passed on.
int bench_wait(struct bench_signals *signals, pid_t pid); // its status as waitpid gives it

/* ---- bench_run.c ---- */
// A temporary folder NAME-XXXXXX; "" when it could not be made, or has been removed with the files in it.
int bench_folder_make(const char *name, char *ret_folder, size_t size, struct wattle_error *reterr);
void bench_folder_remove(char *folder);
// --output takes patterns, and a folder may be named with a "%".
void bench_escape_pattern(const char *path, char *out, size_t size);

enum bench_outcome {
	BENCH_RAN,
	BENCH_STOPPED, // by a signal to us: what it measured is not used
	BENCH_BROKEN   // wattle run itself failed; the error says how
};

struct bench_run {
	double values[BENCH_QUANTITIES];
	double energy_error_j;
	int status; // the command's, 128+N for a signal
	char provenance[16], meter[200];
};

struct bench_runner {
	const struct bench_options *options; // borrowed
	struct bench_signals *signals;       // borrowed
	char folder[256];                    // temporary: run file, report, what the command says on stderr
};
int bench_runner_open(struct bench_runner *runner, const struct bench_options *options, struct bench_signals *signals,
	struct wattle_error *reterr);
void bench_runner_close(struct bench_runner *runner);
// Runs a command under `wattle run` in a process of its own. keep: file to keep the run in, NULL: none.
enum bench_outcome bench_run(const struct bench_runner *runner, char *const *argv, const char *keep,
	struct bench_run *ret_run, struct wattle_error *reterr);
// The end of what the last run said on standard error; "" if nothing was kept.
void bench_last_words(const struct bench_runner *runner, struct buf *out);
// 0, EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE: what execvp would find.
int bench_find_command(const char *command);

/* ---- bench_settle.c ---- */
struct bench_settle {
	struct wattle_env env;
	struct sensor_set sensors;
	bool env_is_open, sensors_are_open;
	struct energy_track *tracks;   // owned: of each device
	int64_t (*rows)[DEVICE_COUNT]; // owned
	int64_t window_ns;             // over which power is told
	struct bench_settling figures;
};
// text: "auto", "0" or a duration. -EINVAL with a sentence.
int bench_settle_parse(const char *text, double *ret_limit_s, struct wattle_error *reterr);
int bench_settle_open(struct bench_settle *settle, double limit_s, struct bench_signals *signals,
	struct wattle_error *reterr);
void bench_settle_close(struct bench_settle *settle);
// Until the machine is as cool and as quiet as at first, within limits. last_run_s: how long the run before took.
void bench_settle_wait(struct bench_settle *settle, struct bench_signals *signals, double last_run_s);

/* ---- bench_loop.c ---- */
struct bench_loop {
	const struct bench_options *options; // borrowed
	const struct bench_runner *runner;   // borrowed
	struct bench_signals *signals;       // borrowed
	struct bench_settle *settle;         // borrowed
	struct bench_result *result;         // borrowed: rounds, end, series, width, meter … are filled in
	double *values;                      // owned: [command][quantity][round]
	double *errors_j;                    // owned: [command][round]
	uint32_t *order;                     // owned: of the commands in this round
	size_t least_rounds, most_rounds;
	double last_run_s;
	char provenance[16], meter[200]; // of the first run that had energy
	bool shows_progress;
};
int bench_loop_open(struct bench_loop *loop, struct wattle_error *reterr); // the borrowed ones are set
void bench_loop_close(struct bench_loop *loop);
// Warm-up and rounds. EXIT_DONE, EXIT_FAILED with a message on stderr, or 128+N; what is complete stands in the result.
int bench_loop_run(struct bench_loop *loop);
// Median of what the meter may be off by; NaN unknown.
double bench_loop_error_j(const struct bench_loop *loop, size_t command);
