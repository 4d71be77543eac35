/* Shared by `wattle run` and `wattle attach`: options, stores, summary and final report. */
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

/* A status line in the last row of a terminal: output of the command scrolls in the rows above, as for apt. On terminals
 * without scroll regions (TERM=dumb, fewer than four rows, unknown size) the text is written at the cursor. */

struct status_line {
	int fd;
	int kept;     // the reserved row, counted from 1; 0: none
	size_t shown; // width in columns of the displayed text
};

// Maximum width of a text: the last column stays free, because some terminals wrap there.
size_t status_line_columns(const struct status_line *row);
// Draws the text. Skipped if the terminal does not accept output: never blocks.
void status_line_draw(struct status_line *row, const char *text, size_t size);
void status_line_finish(struct status_line *row); // clears and releases the row

/* The line of --progress, as a pure function of its values. */

struct progress_figures {
	double elapsed_s, energy_j, power_w; // NaN unknown
	bool is_estimated;                   // marks joules and watts with "~", as in `wattle top`
	const char *step;                    // --step; NULL: no steps are counted
	int64_t steps, all_steps;            // all_steps: VALUE_MISSING without --steps
	struct forecast forecast;
};

/* Writes the line without a newline, at most `width` columns if possible: the least important parts are omitted first. 0:
 * unlimited. */
void progress_line(const struct progress_figures *figures, size_t width, struct buf *out);

/* The connection between a tracker (src/lib/tracker.c) and the recorder that it spawned: `wattle attach --control-fd N …`, for
 * libraries and not in --help. N is a connected stream socket, which also receives the messages that the recorder would
 * otherwise print on stderr before it records. Protocol: lib/tracker_wire.h. With `… PID CMD ARG…` the process has not executed
 * CMD yet and does so after "ready": the Slurm plugin (src/spank) starts it that way. */

struct control {
	int fd;                     // owned: socket
	int peer_fd;                // owned: pidfd of the library's process
	int watch_fd;               // owned: epoll of both, readable when control_read must be called
	bool has_ended;             // the process was waited for
	struct tracker_ended ended; // exit information of the process
};

// Takes ownership of the descriptor; `text` is the argument of --control-fd. -EINVAL: not the number of a connected socket.
int control_open(struct control *control, const char *text, struct wattle_error *reterr);
void control_close(struct control *control);
// Returns true if the recording must end.
bool control_read(struct control *control);
// Sends a message; does nothing if the other end is closed.
void control_send(const struct control *control, const char *word, int code, const char *bytes, size_t size);
// Sends the error to the library, or to stderr if control is NULL. Returns status.
int control_refuse(const struct control *control, int status, const struct wattle_error *error);

/* The uploader of `run --store`: a process beside the recorder that follows the run file and sends new rows to PostgreSQL, with
 * the code of `wattle push`. The recorder never waits for it. The two share a page of memory, with the uploader's parameters
 * and state, and a socket on which the recorder announces the start and the end of the run. A killed uploader is replaced after
 * one second (then two, four … 30), and the replacement continues from the server's marks. When the recorder is killed, the
 * uploader sends what is stored and exits. */

struct uploader;

struct uploader_options {
	const char *url, *path;                     // path: the run file. Used by uploader_start only
	int64_t wait_ns;                            // --store-wait
	void (*warn)(void *data, const char *text); // one line, no newline
	void *data;
};

// Starts the process. It does not open the file yet, and loads its libraries while the recorder continues.
int uploader_start(const struct uploader_options *options, struct uploader **ret_sender, struct wattle_error *reterr);
/* Waits some milliseconds until libpq is loaded. -ENOSYS with a message that names the package; other errors: the process
 * cannot be started. */
int uploader_ready(struct uploader *uploader, struct wattle_error *reterr);
struct companion *uploader_companion(struct uploader *uploader);
// Call about once per second: informs the process that the file exists, restarts it if it was killed, and prints its warnings.
void uploader_maintain(struct uploader *uploader);
// The run is over and its closed file is at `path`: the rest can be sent. Does not wait.
void uploader_run_ended(struct uploader *uploader, const char *path);
struct uploader_result {
	bool is_done; // everything is on the server
	char run_id[40], where[256];
	struct wattle_error why; // reason if not
};
// After uploader_run_ended: waits until everything is on the server, for --store-wait at most, or until SIGINT or SIGTERM.
void uploader_wait(struct uploader *uploader, struct uploader_result *ret_result);
void uploader_free(struct uploader *uploader); // kills the process if it is still running; may be NULL

/* uploader_process.c, uploader_loop.c: the process itself. Internal except for uploader_main. */
enum uploader_state {
	UPLOADER_LOADS,
	UPLOADER_NO_LIBRARY,
	UPLOADER_IS_READY,
	UPLOADER_SENDS,
	UPLOADER_WAITS,
	UPLOADER_GAVE_UP,
	UPLOADER_IS_DONE
};

struct uploader_page { // memory shared by both processes
	struct companion companion;
	char url[4096], path[4096];    // parameters
	int64_t wait_ns;               // retry time after the recorder has exited
	_Atomic bool has_begun;        // the file exists; also announced on the socket
	_Atomic int failed;            // errno: the process could not be started
	_Atomic int64_t cpu_before_ns; // CPU time of its predecessors
	_Atomic int state;             // enum uploader_state
	_Atomic uint32_t n_good;       // number of successful iterations
	_Atomic uint32_t n_told;       // sequence counter; odd while text is written
	char text[600];                // error message, as in a wattle_error
	char run_id[40], where[256];   // set when done
};

enum { UPLOADER_COMMAND_START = 'g', UPLOADER_COMMAND_END = 'o' }; // UPLOADER_COMMAND_END is followed by the path

int uploader_page_new(struct uploader_page **ret_page); // returns the descriptor to pass on, or -errno
pid_t uploader_fork(struct uploader_page *page, int page_fd, int line_fd); // returns the pid or -errno
int uploader_main(void); // internal command `wattle --sender`: the socket and the page are its descriptors
void uploader_loop(struct uploader_page *page, int line_fd) __attribute__((noreturn));

/* The job of a recording: facts for table run, and the key by which ranks share sensors. */

enum { JOB_METADATA_MAX = 20, JOB_NUMBER_SIZE = 24 };

struct measure_job {
	struct job_env job_env;
	bool attached;                // beside its target, which a recorder of the job may have started
	char name[2 * JOB_TEXT_SIZE]; // without secrets: LSF uses the command line as the default
	char user[JOB_TEXT_SIZE];     // user name, or the uid if it has none
	char machine[200];            // the same for all recorders that read the same sensors
	char node[256];               // node name of the scheduler, or else the host name
	char group[1024]; // recorders with the same group share one reader per sensor; "": not shared
	char numbers[JOB_METADATA_MAX][JOB_NUMBER_SIZE];
	struct store_metadata facts[JOB_METADATA_MAX];
	size_t n_metadata;
};

// id: argument of --job, which takes precedence; NULL: none.
void measure_job_env(struct measure_job *job, const char *id);
void measure_job_metadata(struct measure_job *job, const struct wattle_env *env, const char *host, bool alone,
	bool hide_command);

struct measure_options {
	const char *output, *json, *tracking_file;
	const char *ram_unit, *gpu_ram_unit, *time_unit;
	const char *gpus, *gpu_brand, *attribution, *label, *sub_tracking_file, *step, *config, *wall_meter, *cgroup,
		*job;
	const char *store, *mode, *carbon_region;
	struct option_list meta, also, gpu_gain;
	const char *call_graph; // NULL: not given
	int64_t interval_ns, flush_ns, expected_cores, steps, store_wait_ns, profile_hz;
	double budget_percent, carbon_intensity, pue;
	bool no_file, overwrite, append, quiet, disable_logs, per_process, progress, wait_all, span_cpu, nvtx, itt,
		alone, hide_command;
	struct control *control; // borrowed: the tracker that spawned this process; NULL: started by a user
};

enum { RUN_OPTIONS = 43, ATTACH_OPTIONS = RUN_OPTIONS + 2 }; // attach has additional options at the end
extern const struct option measure_option_table[ATTACH_OPTIONS];
struct measure_options measure_defaults(void);

// Checks the options that do not depend on the machine: -EINVAL with a message that names an option.
int measure_check(const struct measure_options *options, struct wattle_error *reterr);

/* A measurement from the options to the printed summary. measure_open is called before the command starts; only it can refuse. */
struct measure {
	struct measure_options options;
	struct wattle_env env;
	struct measure_job job;
	struct sensor_set sensors;
	struct idle_power *idle; // owned: one per device, for --attribution active; NULL: not wanted
	char path[4096];  // path of the run file
	char folder[512]; // --no-file: temporary folder, removed with the run file; "": none
	mode_t file_mode; // mode of the run file and the tracking file
	struct write_queue_sink sinks[2];
	size_t n_sinks;
	bool env_is_open, sensors_are_open;
	struct measure_progress *progress; // owned; NULL: no --progress
	struct uploader *uploader;         // owned; NULL: no --store
};

// pid: the root process of the target; command: its argv.
int measure_open(struct measure *measure, const struct measure_options *options, pid_t pid, const char *const *command,
	bool attached, struct wattle_error *reterr);
void measure_recorder_options(struct measure *measure, struct recorder_options *ret_options);
// Closes the stores and reads the run back: joins spans of a sub-tracking file, prints the summary, writes JSON. EXIT_DONE, or
// EXIT_FAILED with messages; the run file is kept in both cases.
int measure_conclude(struct measure *measure, const struct recorder_result *result);
void measure_close(struct measure *measure, bool discard);
void measure_close_stores(struct measure *measure, bool discard);
void measure_send_file(const struct measure *measure); // sends the path to the tracker that spawned this process

/* output.c: the name of the run file. */
struct output_naming {
	const char *pattern; // --output, which may contain %j %s %r %h %p; NULL: the default
	pid_t pid;           // pid of the command
	const struct job_env *job_env;
	bool append; // --append: a restarted rank appends to the file of its predecessor
};
int output_path(const struct output_naming *how, char *ret_path, size_t size, struct wattle_error *reterr);
// Whether several ranks of a job may get the same file name.
bool output_may_collide(const char *pattern, const struct job_env *job_env);
// Whether another step of the job may get the same file name.
bool output_may_meet_step(const char *pattern, const struct job_env *job_env);
/* progress.c */
struct measure_progress;
struct measure_progress *progress_new(const struct measure_options *options);
void progress_free(struct measure_progress *progress); // also ends its output line
void progress_show(struct measure_progress *progress, const struct recorder_progress *figures);

/* --store: the uploader's part in `wattle run` and `wattle attach`. */

// Starts the uploader if --store was given. Call it before the run file is created.
int measure_store_open(struct measure *measure, struct wattle_error *reterr);
void measure_store_maintain(void *data); // data: struct measure
/* The run file is closed and final: the uploader may send the rest. */
void measure_store_over(struct measure *measure);
/* Waits until the rest is sent and prints the result. Writes the last line of the summary to ret_line: where the run is stored
 * now; "" for none. A run file that the user did not ask for is deleted once everything is on the server. */
void measure_store_conclude(struct measure *measure, bool is_whole, char *ret_line, size_t size);

/* Tracing of unmodified programs: NVTX and ITT load a library that the environment names; that library writes spans. */

enum { ASSIGNMENTS_MAX = 8 };

struct assignments { // variables added to the command's environment, for target_start
	char *items[ASSIGNMENTS_MAX + 1]; // owned, NULL-terminated
	size_t n;
};

// -ENOMEM.
int assignments_add(struct assignments *assignments, const char *name, const char *value, struct wattle_error *reterr);
void assignments_free(struct assignments *assignments);

/* Adds the variables for --nvtx and --itt; nothing if neither was given. -ENOENT: the library is in none of the folders where
 * this program was built or installed. Warns on stderr if a library named by the user's environment is replaced. */
int injection_assign(const struct measure_options *options, struct assignments *assignments,
	struct wattle_error *reterr);
// "--nvtx" or "--itt" if one of them was given, otherwise NULL.
const char *injection_option(const struct measure_options *options);
