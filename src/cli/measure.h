/* What `wattle run` and `wattle attach` share: their options, the stores, the summary and the report afterwards. */
#pragma once

#include "analysis/forecast/forecast.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "cli/command.h"
#include "job/job.h"
#include "lib/tracker_wire.h"
#include "process/machine.h"
#include "sampler/recorder.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last row of a terminal, which what the command writes leaves alone: that scrolls in the rows above, as under apt.
 * Where the terminal can't do that (TERM=dumb, fewer than four rows, none known) the text stands where the cursor is. */

struct last_row {
	int fd;
	int kept;     // the row that is kept free, counted from 1; 0: none is
	size_t shown; // columns of the text that stands there
};

// Columns that a text may have: the last one is left free, where some terminals begin a new line.
size_t last_row_columns(const struct last_row *row);
// Left out where the terminal takes nothing: nobody is waited for.
void last_row_draw(struct last_row *row, const char *text, size_t size);
void last_row_finish(struct last_row *row); // gives the row back, empty

/* The line of --progress, as a pure function of its figures. */

struct progress_figures {
	double elapsed_s, energy_j, power_w; // NaN unknown
	bool is_estimated;                   // joules and watts: "~" stands before them, as in `wattle top`
	const char *step;                    // --step; NULL: nothing is counted
	int64_t steps, all_steps;            // VALUE_MISSING: --steps was not given
	struct forecast forecast;
};

/* Without a newline; at most `width` columns, as far as that goes: what tells least is left out first. 0: any width. */
void progress_line(const struct progress_figures *figures, size_t width, struct buf *out);

/* The line between a tracker (src/lib/tracker.c) and the recorder that it spawned: `wattle attach --control-fd N …`, for
 * libraries and not in --help. N is a connected stream socket; what the recorder would say on stderr before it records
 * goes there. What is said: lib/tracker_wire.h. With `… PID CMD ARG…` the process has not executed CMD yet and does so after
 * "ready": so the plugin for Slurm (src/spank) starts it. */

struct control {
	int fd;                     // owned: the socket
	int peer_fd;                // owned: pidfd of the library's process
	int watch_fd;               // owned: an epoll of both, readable when control_read is to be called
	bool has_ended;             // the process was waited for …
	struct tracker_ended ended; // … and this is what is known of it
};

// Takes the descriptor; `text` is what stood after --control-fd. -EINVAL: no connected socket of that number.
int control_open(struct control *control, const char *text, struct wattle_error *reterr);
void control_close(struct control *control);
// True: the recording is to end.
bool control_read(struct control *control);
// Where nobody listens any more, nothing happens.
void control_say(const struct control *control, const char *word, int code, const char *bytes, size_t size);
// The error goes to the library, or to stderr where control is NULL. Returns status.
int control_refuse(const struct control *control, int status, const struct wattle_error *error);

/* The sender of `run --store`: a process beside the recorder that follows the run file and sends what is new to PostgreSQL, by the
 * very code of `wattle push`. The recorder never waits for it: they share a page, of what it is to do and of figures, and a line on which
 * the recorder says that the run has begun, and that it is over. Killed, it has a successor a second later (then two, four … 30), which
 * goes on where the server says that it was. When the recorder is killed, it sends what is stored and ends. */

struct sender;

struct sender_options {
	const char *url, *path;                     // path: of the run file. Only sender_start looks at these
	int64_t wait_ns;                            // --store-wait
	void (*warn)(void *data, const char *text); // one line, no newline
	void *data;
};

// It does not touch the file yet, and loads what it needs while the recorder goes on.
int sender_start(const struct sender_options *options, struct sender **ret_sender, struct wattle_error *reterr);
/* Waits for its word that libpq is there, milliseconds. -ENOSYS with a sentence that names the package; another error: it can't be
 * started. */
int sender_ready(struct sender *sender, struct wattle_error *reterr);
struct companion *sender_companion(struct sender *sender);
// About once a second: tells it that the file is there, starts another one if it was killed, passes on what it has to say.
void sender_tend(struct sender *sender);
// The run is over, its file closed, and it is at `path`: the rest can be sent. Does not wait.
void sender_over(struct sender *sender, const char *path);
struct sender_result {
	bool is_done; // everything is on the server
	char run_id[40], where[256];
	struct wattle_error why; // it is not
};
// After sender_over: waits until everything is on the server, --store-wait at most, or until SIGINT or SIGTERM comes.
void sender_wait(struct sender *sender, struct sender_result *ret_result);
void sender_free(struct sender *sender); // ends it at once if it is still there; NULL is fine

/* sender_process.c, sender_loop.c: the process itself. Within the module, but for sender_main. */
enum sender_state {
	SENDER_LOADS,
	SENDER_LACKS_LIBRARY,
	SENDER_IS_READY,
	SENDER_SENDS,
	SENDER_WAITS,
	SENDER_GAVE_UP,
	SENDER_IS_DONE
};

struct sender_page { // shared by both
	struct companion companion;
	char url[4096], path[4096];    // what it is to do
	int64_t wait_ns;               // once the recorder is gone
	_Atomic bool has_begun;        // the file is there; said on the line too
	_Atomic int failed;            // errno: it could not be started
	_Atomic int64_t cpu_before_ns; // of those that were before this one
	_Atomic int state;             // enum sender_state
	_Atomic uint32_t n_good;       // turns that went well
	_Atomic uint32_t n_told;       // odd while text is written
	char text[600];                // why it waits; as of a wattle_error
	char run_id[40], where[256];   // once it is done
};

enum { SENDER_SAYS_GO = 'g', SENDER_SAYS_OVER = 'o' }; // the second is followed by the path

int sender_page_new(struct sender_page **ret_page);                    // its descriptor, to be passed on, or -errno
pid_t sender_fork(struct sender_page *page, int page_fd, int line_fd); // or -errno
int sender_main(
	void); // of `wattle --sender`, which has the line and the page as its descriptors and is nothing for people
void sender_loop(struct sender_page *page, int line_fd) __attribute__((noreturn));

/* What a recording says of its job: facts for table run, and what it shares sensors by. */

enum { JOB_FACTS_MAX = 20, JOB_NUMBER_SIZE = 24 };

struct measure_job {
	struct job_place place;
	bool attached;                // beside its target, which may have been started by a recorder of the job itself
	char name[2 * JOB_TEXT_SIZE]; // without secrets: LSF makes it of the command line
	char user[JOB_TEXT_SIZE];     // name of the uid, or its number
	char machine[200];            // the same for all who read the same sensors
	char node[256];               // the scheduler's name of it, else the host's
	char group[1024]; // the same for those of whom one reads a sensor for all; "": we read for ourselves
	char numbers[JOB_FACTS_MAX][JOB_NUMBER_SIZE];
	struct store_fact facts[JOB_FACTS_MAX];
	size_t n_facts;
};

// id: what --job says, it wins; NULL: nothing.
void measure_job_place(struct measure_job *job, const char *id);
void measure_job_facts(struct measure_job *job, const struct wattle_env *env, const char *host, bool alone,
	bool hide_command);

struct measure_options {
	const char *output, *json, *tracking_file;
	const char *ram_unit, *gpu_ram_unit, *time_unit;
	const char *gpus, *gpu_brand, *attribution, *label, *sub_tracking_file, *step, *config, *wall_meter, *cgroup,
		*job;
	const char *store, *mode;
	struct option_list meta, also, gpu_gain;
	int64_t interval_ns, flush_ns, expected_cores, steps, store_wait_ns;
	double budget_percent, carbon_intensity, pue;
	bool no_file, overwrite, append, quiet, disable_logs, per_process, progress, wait_all, span_cpu, nvtx, itt, alone,
		hide_command;
	struct control *control; // borrowed: the tracker that spawned us; NULL: a person did
};

enum { RUN_OPTIONS = 40, ATTACH_OPTIONS = RUN_OPTIONS + 2 }; // attach has more, the last
extern const struct option measure_option_table[ATTACH_OPTIONS];
struct measure_options measure_defaults(void);

// What is wrong with the options whatever the machine: -EINVAL with a sentence that names one.
int measure_check(const struct measure_options *options, struct wattle_error *reterr);

/* From options to the printed summary. Opened in measure_open, when nothing of the command has run yet; every refusal
 * comes from there. */
struct measure {
	struct measure_options options;
	struct wattle_env env;
	struct measure_job job;
	struct sensor_set sensors;
	struct idle_power *idle; // owned: of each device, --attribution active; NULL: not wanted
	char path[4096];  // of the run file
	char folder[512]; // --no-file: made for it, and removed with it; "": none
	mode_t file_mode; // of it and of the tracking file
	struct outbox_sink sinks[2];
	size_t n_sinks;
	bool env_is_open, sensors_are_open;
	struct measure_progress *progress; // owned; NULL: none asked for
	struct sender *sender;             // owned; NULL: no --store
};

// pid: the root process of the target; command: its argv.
int measure_open(struct measure *measure, const struct measure_options *options, pid_t pid, const char *const *command,
	bool attached, struct wattle_error *reterr);
void measure_recorder_options(struct measure *measure, struct recorder_options *ret_options);
// Closes the stores, then reads the run back: spans of a sub-tracking file, summary, JSON. EXIT_DONE, or EXIT_FAILED
// with messages; the run file stands either way.
int measure_conclude(struct measure *measure, const struct recorder_result *result);
void measure_close(struct measure *measure, bool discard);
void measure_close_stores(struct measure *measure, bool discard);
void measure_tell_file(const struct measure *measure); // to the tracker that spawned us

/* output.c: the name of the run file. */
struct output_naming {
	const char *pattern; // of --output, with %j %s %r %h %p in it; NULL: the default
	pid_t pid;           // of the command
	const struct job_place *place;
	bool append; // --append: what was started again goes into its predecessor's file
};
int output_path(const struct output_naming *how, char *ret_path, size_t size, struct wattle_error *reterr);
// Whether ranks of one job make the same name of it.
bool output_may_collide(const char *pattern, const struct job_place *place);
// Whether another step of one job makes the same name of it.
bool output_may_meet_step(const char *pattern, const struct job_place *place);
/* progress.c */
struct measure_progress;
struct measure_progress *progress_new(const struct measure_options *options);
void progress_free(struct measure_progress *progress); // ends its line
void progress_show(struct measure_progress *progress, const struct recorder_progress *figures);

/* --store: what `wattle run` and `wattle attach` have to do with the sender. */

// --store was given: the sender is started. Before anything of the run is there.
int measure_store_open(struct measure *measure, struct wattle_error *reterr);
void measure_store_tend(void *data); // of struct measure
/* The run file is closed and as it will stay: the sender may send the rest. */
void measure_store_over(struct measure *measure);
/* Waits for that, and says what became of it. Writes the line that the summary ends with, "" if there is nothing to say: where the run
 * is now. A run file that nobody asked for goes, once everything is on the server. */
void measure_store_conclude(struct measure *measure, bool is_whole, char *ret_line, size_t size);

/* Capture of unmodified programs: NVTX and ITT load a library that the environment names, and that library writes spans. */

enum { ASSIGNMENTS_MAX = 8 };

struct assignments { // what the command's environment has on top of ours, as target_start wants it
	char *items[ASSIGNMENTS_MAX + 1]; // owned, NULL-terminated
	size_t n;
};

// -ENOMEM.
int assignments_add(struct assignments *assignments, const char *name, const char *value, struct wattle_error *reterr);
void assignments_free(struct assignments *assignments);

/* What --nvtx and --itt ask for; nothing if neither was given. -ENOENT: the capture library is not where this program was
 * built or installed. Says on stderr when a library that the user's own environment names has to give way. */
int injection_assign(const struct measure_options *options, struct assignments *assignments, struct wattle_error *reterr);
// "--nvtx" or "--itt" if one of them was given, else NULL.
const char *injection_option(const struct measure_options *options);
