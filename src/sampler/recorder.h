/* The recorder: one thread, one epoll loop. It starts or follows the target, ticks the sampler, passes the collected
 * rows to the stores every flush_ns, once a second by default, and ends with the target. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "base/intern.h"
#include "energy/track.h"
#include "job/job.h"
#include "metric/metric.h"
#include "process/tree.h"
#include "sampler/sampler.h"
#include "sampler/target.h"
#include "span/reader/reader.h"
#include "store/store.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* Sharing of sensors among several recorders of one job on one machine. There is one claim for the sensors of the whole
 * machine and one for each GPU, so that each rank reads the GPUs that are visible to it. The event `sensors` in the run
 * file records which recorder reads a sensor, and from which time. */

struct sensor_locks {
	struct sampler *sampler; // borrowed
	int64_t rank;            // this recorder's; VALUE_MISSING: unknown
	struct sensor_lock {
		struct claim claim;
		const struct domain *first; // first device of the claim: gives the claim its name
		pid_t reported_owner;       // reader in the last event; 0: none, or unknown
	} * locks;                          // owned
	size_t n;
	size_t *lock_of; // owned: one for each device
};

/* group: identifies the job and the machine, the same text for all recorders that share sensors; NULL or "": no
 * sharing, this recorder reads all sensors. target: the measured pid. -ENOMEM. */
int sensor_locks_open(struct sensor_locks *sensor_locks, struct sampler *sampler, const char *group, int64_t rank,
	pid_t target);
// Descriptor of a claim, to be watched for EPOLLIN | EPOLLRDHUP; it changes with each takeover. -1: none.
int sensor_locks_fd(const struct sensor_locks *sensor_locks, size_t lock);
/* Call when the descriptor fd hung up, and with -1 at each tick: takes over free claims. True if a descriptor changed
 * and must be watched; *ret_took: this recorder took over sensors. */
bool sensor_locks_turn(struct sensor_locks *sensor_locks, int fd, int64_t t_ns, bool *ret_took);
bool sensor_locks_has(const struct sensor_locks *sensor_locks, int fd);
// Call after the last reading, so that the other recorders need not wait while this one stores it.
void sensor_locks_release(struct sensor_locks *sensor_locks);
void sensor_locks_close(struct sensor_locks *sensor_locks);

/* Signals that request the end of a recording (SIGINT, SIGTERM, SIGHUP), and the time that finishing may take after
 * them. The command gets them too, and may continue: a daemon that reloads on SIGHUP, an interpreter that survives
 * Ctrl-C. */

struct end_request {
	int64_t asked_ns;     // time of the signal; 0: none
	int64_t finishing_ns; // start of finishing; 0: the recording continues
};

// During the recording the last signal counts; during finishing the first, so that repeating it grants no more time.
void end_request_signal(struct end_request *request, int64_t now_ns);

// The command has ended. A signal long before that did not request this end, and is dropped.
void end_request_finish(struct end_request *request, int64_t now_ns);

// Whether finishing has used its time, counted from the signal or the start of finishing, whichever is later.
bool end_request_is_overdue(const struct end_request *request, int64_t now_ns, int64_t timeout_ns);

/* Spans, metrics and marks on their way to the run file. They wait for the next flush. If too many arrive before it,
 * they are written to the spool at once. Later ones are too, until only half as many arrive within a second. */

enum {
	WRITE_QUEUE_SPANS = 20000,
	WRITE_QUEUE_METRICS = 8000,
	WRITE_QUEUE_MARKS = 4000,
	WRITE_QUEUE_OPEN_SPANS = 1024,
	WRITE_QUEUE_SPILL = 4096
};

struct write_queue_sink;

struct write_queue_spans {
	struct span_row *open, *ended;   // owned
	struct span_metric_row *metrics; // owned
	struct span_mark_row *marks;     // owned
	size_t n_open, n_ended, n_metrics, n_marks;
	bool is_spilling;
	size_t n_since_spill_check; // rows of all kinds
	int64_t n_lost;        // dropped because this queue or the disk was full
	// Borrowed: the run file; the recording's names, which move when they grow.
	struct write_queue_sink *sink;
	const char *const *const *names;
	const uint32_t *n_names;
	bool is_loss_reported;
	char loss[600]; // why the last spill failed; "": it did not
};

int write_queue_spans_open(struct write_queue_spans *spans); // -ENOMEM
void write_queue_spans_close(struct write_queue_spans *spans);
void write_queue_add_span(struct write_queue_spans *spans, const struct span_row *row);
void write_queue_add_metric(struct write_queue_spans *spans, const struct span_metric_row *row);
void write_queue_add_mark(struct write_queue_spans *spans, const struct span_mark_row *row);
// The rows for store_ops.write. While spilling, only the open spans: all other rows are in the spool.
struct store_spans write_queue_spans_delivery(struct write_queue_spans *spans);
void write_queue_spans_delivered(struct write_queue_spans *spans);
// Call once a second: decides whether spilling continues.
void write_queue_spans_update_spilling(struct write_queue_spans *spans);

/* Call stacks of the target (--profile), sampled by perf_event_open: an event for each CPU, with a ring of records. Where that
 * is permitted (CAP_PERFMON), it samples all processes and the recorder drops the others; its clock goes on from process to
 * process, so that short ones have their part of the samples. Else it is inherited by all threads and children of the target,
 * each of which begins a sampling period of its own. */

struct profile_options {
	int64_t hz;      // 0: no profile
	bool call_graph; // false: only the innermost frame
};

/* profile_events.c: the events, and their records in order of time. */
struct profile_events {
	struct profile_ring {
		int fd; // borrowed from fds
		void *pages;
	} * rings; // owned; one for each CPU
	size_t n_rings, ring_bytes;
	int *fds; // owned
	size_t n_fds, fds_capacity;
	int epoll_fd;         // owned: readable when a ring should be read
	const char *name;     // of the event
	bool is_wide;         // of all processes
	struct perf_event_attr attr;
	unsigned char *bytes; // owned: records that were read and wait for earlier ones of other CPUs
	size_t size, capacity;
	struct profile_record {
		int64_t t_ns;
		size_t at; // in bytes
	} * records; // owned
	size_t n_records, records_capacity;
	int64_t n_lost;
};
struct profile_sink { // receives the records in order of time
	void (*sample)(void *data, int64_t t_ns, pid_t pid, pid_t tid, uint64_t weight, bool in_kernel,
		const uint64_t *addresses, size_t n); // innermost first
	void (*map)(void *data, pid_t pid, uint64_t begin, uint64_t size, uint64_t offset,
		struct store_profile_module *module);
	void (*fork)(void *data, pid_t pid, pid_t ppid);
	void (*exec)(void *data, pid_t pid);
	void (*exit)(void *data, pid_t pid);
	void *data;
};
/* held: the thread has not executed its command yet; sampling begins with its exec. Negative errno with a message. */
int profile_events_open(struct profile_events *events, const struct profile_options *options, pid_t tid, bool held,
	struct wattle_error *reterr);
int profile_events_add(struct profile_events *events, pid_t tid); // a further thread; -ESRCH: it has ended
// Delivers the records older than until_ns; later ones wait.
void profile_events_read(struct profile_events *events, int64_t until_ns, const struct profile_sink *sink);
void profile_events_close(struct profile_events *events);

/* profile_maps.c: which module lies where in the memory of each process. */
struct profile_maps {
	struct intern interned; // modules by identity and path
	struct arena *arena;    // owned
	struct store_profile_module *modules; // owned
	size_t n_modules, modules_capacity;
	struct profile_process **processes; // owned; ascending by pid
	size_t n_processes, processes_capacity;
	size_t n_maps;
	bool only_known; // ignores processes that are neither `held` nor children of known ones
	pid_t held;      // becomes known by its exec
};
enum { PROFILE_MODULE_UNKNOWN, PROFILE_MODULE_KERNEL, PROFILE_MODULES_SPECIAL };
int profile_maps_open(struct profile_maps *maps); // -ENOMEM
void profile_maps_close(struct profile_maps *maps);
void profile_maps_add(struct profile_maps *maps, pid_t pid, uint64_t begin, uint64_t size, uint64_t offset,
	struct store_profile_module *module);
void profile_maps_fork(struct profile_maps *maps, pid_t pid, pid_t ppid); // pid == ppid: a thread
void profile_maps_exec(struct profile_maps *maps, pid_t pid);
void profile_maps_exit(struct profile_maps *maps, pid_t pid); // of a thread
// The mappings of a running process, from /proc/PID/maps.
void profile_maps_read(struct profile_maps *maps, int procfs_fd, pid_t pid);
bool profile_maps_has(const struct profile_maps *maps, pid_t pid);
// Module and offset of an address; PROFILE_MODULE_UNKNOWN: none.
uint32_t profile_maps_find(const struct profile_maps *maps, pid_t pid, uint64_t address, uint64_t *ret_offset);
// The pid in the path of a perf map; 0: the module is something else.
pid_t profile_map_pid(const struct store_profile_module *module);

/* profile_jit.c: names of generated code from /tmp/perf-PID.map, which any process can write: at most `max` symbols that
 * contain one of the sorted addresses. The names are in the arena. Returns their number. */
size_t profile_jit_read(const char *path, const uint64_t *addresses, size_t n, struct arena *arena,
	struct store_profile_symbol *out, size_t max);

/* profile.c: stacks and samples on their way to the run file. */
struct profiler;
// held: the process that has not executed its command yet; 0: the processes of the tree.
int profiler_open(const struct profile_options *options, const struct tree *tree, pid_t held, struct profiler **ret_profiler,
	struct wattle_error *reterr);
void profiler_close(struct profiler *profiler);         // NULL: nothing
int profiler_fd(const struct profiler *profiler);       // to be watched for EPOLLIN; -1: no profiler
void profiler_read(struct profiler *profiler);          // NULL: nothing
void profiler_finish(struct profiler *profiler);        // after the end of the target; NULL: nothing
struct store_profile profiler_delivery(const struct profiler *profiler); // what the run file does not have yet
void profiler_delivered(struct profiler *profiler);     // NULL: nothing

/* Rows waiting for the stores: records, ended processes, events, spans. Each store receives the rows that it does not
 * have yet. Rows that can't be written to the run file (disk full) wait for the next attempt, until the buffer is
 * full. */

struct exit_record;

enum { WRITE_QUEUE_PROCESSES = 512 };

struct write_queue_sink { // a store in use; the first one is the run file
	const struct store_ops *ops;
	void *state; // owned by the caller
	// Used by the queue: number of waiting rows that this store already has.
	size_t batch_bytes, n_processes, n_events;
	bool failing;  // the last write failed, which was reported
	bool given_up; // a second file whose write failed: no further writes
};

struct write_queue {
	struct batch batch;
	struct store_process processes[WRITE_QUEUE_PROCESSES];
	size_t n_processes, n_processes_lost;
	struct write_queue_spans spans; // for the run file only
	struct profiler *profiler;      // borrowed: for the run file only; NULL: none
	struct sampler *sampler;   // borrowed: holds the events
	struct write_queue_sink *sinks; // borrowed
	size_t n_sinks;
	int64_t n_lost; // samples dropped because the buffer was full
	char loss[600]; // why the last write failed
	void (*warn)(void *data, const char *text);
	void *warn_data;
};

int write_queue_open(struct write_queue *queue, size_t batch_capacity); // -ENOMEM
void write_queue_close(struct write_queue *queue);
// Moves ended members from the tree to the queue. write_queue_add_running adds the others, at the end of the run.
void write_queue_take_ended(struct write_queue *queue, struct tree *tree);
void write_queue_add_running(struct write_queue *queue, struct tree *tree);
void write_queue_add_exit(struct write_queue *queue, const struct exit_record *record);
// True when all rows are in the run file.
bool write_queue_flush(struct write_queue *queue);
bool write_queue_is_nearly_full(const struct write_queue *queue); // should be flushed early
// Finishes all stores; true when the run file is complete.
bool write_queue_finish(struct write_queue *queue, struct store_footer *footer);

/* Additional data for options->progress: the energy so far, now and at the ends of steps. */

enum { STEP_POINTS = 128, RUNNING_ENERGY_TICKS = 16 };

struct step_point { // number of ended steps, the last of which ended at t_ns
	int64_t steps, t_ns;
	double energy_j; // since the start; NaN: unknown
};

struct running_energy_device {
	struct energy_track track;
	bool in_total;
};

struct running_energy {
	struct running_energy_device *devices; // owned, one for each device; NULL: not requested
	int64_t start_ns;
	struct running_energy_tick {
		int64_t t_ns;
		double energy_j;
	} ticks[RUNNING_ENERGY_TICKS]; // a ring
	size_t n_ticks;             // in total
	bool has_pace;              // the update period of each device is known, and therefore the power
	enum provenance provenance; // weakest provenance of the devices
	size_t n_known;             // devices in the sum of the last tick: a new one adds all its energy so far
	int64_t steps, step_ns;     // number of ended steps; end of the last one
	struct step_point points[STEP_POINTS];
	size_t n_points;
};

int running_energy_open(struct running_energy *running, const struct sampler *sampler); // -ENOMEM
void running_energy_close(struct running_energy *running);
void running_energy_add_up(struct running_energy *running, const struct sampler *sampler); // up to the last sample
// Call after each sample. start_ns: start of the recording, 0 before it.
void running_energy_tick(struct running_energy *running, const struct sampler *sampler, int64_t start_ns);
void running_energy_step(struct running_energy *running, int64_t end_ns);
double running_energy_j(const struct running_energy *running); // at the last tick; NaN: unknown
void running_energy_clear_points(struct running_energy *running);

struct recorder_progress {
	int64_t start_ns, t_ns;          // of the recording; of the last sample
	double energy_j;                 // since the start; energy.total_j of the report; NaN: unknown
	enum provenance provenance;      // weakest provenance of its parts
	double power_w, cpu_cores;       // since the last call; NaN: unknown
	int64_t rss_bytes, processes;    // VALUE_MISSING unknown
	int64_t steps;                   // calls of options->step that have ended
	const struct step_point *points; // ends of steps since the last call, n_points of them; borrowed
	size_t n_points;
};

struct recorder_outcome { // end of a process that is not a child of the recorder
	int wait_status;
	struct rusage usage; // of the process and all descendants that were waited for; without ru_maxrss
};

struct recorder_options {
	struct sampler_options sampler;
	struct cgroup *cgroup; // recorder_attach: the target is the processes of this cgroup; NULL: a process. Borrowed
	const pid_t *also;     // recorder_attach: further processes of the target, n_also of them. Borrowed
	size_t n_also;
	bool held; // recorder_attach: the process waits before its exec for `ready`: until then it is a copy of its parent
	const char *shares_with; // group of sensor_locks_open; NULL or "": all sensors are this recorder's
	int64_t rank;                               // rank of this recorder in the group; VALUE_MISSING: unknown
	bool wait_all;                              // --wait-all
	bool span_cpu;                              // --span-cpu
	struct profile_options profile;             // --profile
	int64_t flush_ns;                           // --flush: how often rows are stored
	const char *step;                           // --step, counted for `progress`; NULL: none
	void (*warn)(void *data, const char *text); // one line, no newline
	void (*progress)(void *data, const struct recorder_progress *progress); // about once a second; NULL: none
	void (*maintain)(void *data); // about once a second: work beside the recording; NULL: none
	// Called after attaching and the first sample; ring: the value of WATTLE_RING, "" if there is none. NULL: no
	// call
	void (*ready)(void *data, const char *ring);
	bool (*control)(void *data); // control_fd is readable; true: the recording ends. NULL: none
	int control_fd;              // borrowed
	// With `held`: returns the end of the process as its parent reported it; false: no report yet. NULL: there is
	// no report
	bool (*outcome)(void *data, struct recorder_outcome *ret_outcome);
	void *data;
};

struct recorder {
	const struct wattle_env *env; // borrowed, as are the next three
	const struct recorder_options *options;
	struct sensor_set *sensors;
	struct target *target; // NULL: attached
	pid_t pid;             // of the root process
	struct tree tree;
	struct sampler sampler;
	struct exits exits;
	struct write_queue queue;
	struct poll_schedule schedule;
	struct sensor_locks sensor_locks;
	struct profiler *profiler; // owned; NULL: no --profile
	struct span_collector collector; // listener.fd is -1: spans are not recorded
	int drain_fd;              // owned: timer for reading the rings; -1: not open
	bool drain_is_set;
	char ring_address[RING_ADDRESS_TEXT];        // for WATTLE_RING; "": there is none
	int epoll_fd, timer_fd, poll_fd, signal_fd;  // owned; -1 not open
	struct recorder_roots {
		int *fds; // owned: pidfds, -1: ended
		size_t n, running;
	} roots;       // attach: the recording ends with the last of these processes; run: the command
	int cgroup_fd; // borrowed: events of options->cgroup; -1: none
	int64_t start_ns, end_ns, flushed_ns, spill_checked_ns, end_checked_ns;
	struct end_request end_request;
	int64_t n_missed; // ticks that were too late to be taken
	int64_t n_wakeups;
	int64_t fork_floor_bytes; // this program's peak memory at the fork, from which the command's ru_maxrss starts
	struct rusage main_usage;
	int wait_status;
	bool main_childless; // the main process never waited for a child: its rusage excludes children
	bool main_ended, stop;
	bool has_outcome;     // attached: wait_status and rusage are known from the parent's report
	struct running_energy running; // for options->progress, as are these
	int64_t progress_t_ns, progress_cpu_ns;
	double progress_energy_j;
	size_t progress_n_known;
	bool progress_had_pace;
	struct recorder_steps {
		uint32_t name;    // SPAN_NO_NAME: not among the names yet …
		uint32_t n_names; // … of which this many have been checked
	} steps;
};

struct recorder_result {
	struct store_footer footer;
	int status;     // exit status of wattle run: the command's own, or 128+N
	bool whole;     // everything is in the run file
	char loss[600]; // if not whole: the error
	// Number of spans, if a signal requested the end and there are more than can be processed in a moment; else 0.
	int64_t spans_to_leave;
};

/* Records a command that target_start has forked. `sinks` are open; they are finished here, not closed. Returns 0,
 * or EXIT_NOT_FOUND / EXIT_NOT_EXECUTABLE when the command never ran, or negative errno when recording cannot begin
 * (the command is then still held); with a message in all these cases but 0. */
int recorder_run(const struct wattle_env *env, struct sensor_set *sensors, struct target *target, const char *command,
	struct write_queue_sink *sinks, size_t n_sinks, const struct recorder_options *options,
	struct recorder_result *ret_result, struct wattle_error *reterr);

/* Records a running process until it ends or SIGINT, SIGTERM or SIGHUP arrives. Negative errno with a message if
 * there is no such process. With options->also: until the last of them has ended. With options->cgroup: until that
 * is empty or gone; pid is its main_pid then. */
int recorder_attach(const struct wattle_env *env, struct sensor_set *sensors, pid_t pid, struct write_queue_sink *sinks,
	size_t n_sinks, const struct recorder_options *options, struct recorder_result *ret_result,
	struct wattle_error *reterr);

/* footer.c: the sums at the end, from tree, exits and sampler. */
void recorder_make_footer(struct recorder *recorder, struct store_footer *ret_footer);

/* recorder_sensor_lock.c: sensors that this recorder shares with other recorders. */
int recorder_sensor_locks_open(struct recorder *recorder); // -ENOMEM; call after opening the queue and the loop
// Call when fd hung up, and with -1 at each tick. True: this recorder took over sensors and has read them.
bool recorder_sensor_locks_turn(struct recorder *recorder, int fd);

// progress.c: calls options->progress.
void recorder_report_progress(struct recorder *recorder);

// recorder.c: reads the pending signals and records those that request the end. recorder_must_hurry: a signal requested
// the end, and finishing has used its time.
void recorder_read_signals(struct recorder *recorder);
bool recorder_must_hurry(struct recorder *recorder, int64_t timeout_ns);

/* recorder_roots.c: pid and options->also. Negative errno with a message if one of them does not exist. */
int recorder_roots_open(struct recorder *recorder, pid_t pid, struct wattle_error *reterr);
int recorder_roots_watch(struct recorder *recorder);          // by epoll_fd
bool recorder_roots_ended(struct recorder *recorder, int fd); // fd is readable; true: the last one has ended
void recorder_roots_close(struct recorder *recorder);

/* recorder_spans.c. A recording without spans is better than none: opening does not fail. */
void recorder_spans_open(struct recorder *recorder); // after the outbox and the loop
void recorder_spans_close(struct recorder *recorder);
void recorder_serve_spans(struct recorder *recorder);   // intake.epoll_fd is readable, or a process may have ended
void recorder_drain_spans(struct recorder *recorder);   // drain_fd is readable
void recorder_collect_spans(struct recorder *recorder); // before a flush
void recorder_finish_spans(struct recorder *recorder);  // before the last flush
void recorder_count_spans(const struct recorder *recorder, struct store_footer *footer);

// recorder_outcome.c: waits a moment for options->outcome.
void recorder_read_outcome(struct recorder *recorder);

// recorder_open.c. recorder_close frees what recorder_new made, whether recorder_open failed or not; NULL: no memory.
struct recorder *recorder_new(const struct wattle_env *env, struct sensor_set *sensors, struct write_queue_sink *sinks,
	size_t n_sinks, const struct recorder_options *options);
int recorder_open(struct recorder *recorder);
void recorder_close(struct recorder *recorder);
