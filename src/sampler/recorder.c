#include "sampler/recorder.h"

#include "base/util.h"
#include "process/cgroup.h"
#include "process/machine.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t spill_check_period_ns = NS_PER_S - NS_PER_S / 100; // a second, less the jitter of ticks
static const int64_t end_check_period_ns = NS_PER_S / 4;
// After a signal, or after the end of the command that the signal requested, spans become rows for at most this long.
static const int64_t MERGE_TIMEOUT_NS = 400 * NS_PER_MS;
enum { DEADLINE_SPANS_MAX = 500000 }; // about 0.3 s of CPU time for a summary

/* ---- ticks ---- */

static void on_exit_record(void *data, const struct exit_record *record)
{
	struct recorder *recorder = data;
	write_queue_add_exit(&recorder->queue, record);
}

/* Adds exit records, and then removes ended processes from the tree. In this order, and after reading the tree:
 * processes in the tree are not new, and a record needs the parents of its process. */
static void check_ended(struct recorder *recorder)
{
	int64_t t_ns = recorder->sampler.last_t_ns;
	exits_read(&recorder->exits, &recorder->tree, t_ns);
	write_queue_take_ended(&recorder->queue, &recorder->tree);
	recorder->end_checked_ns = t_ns;
}

static void take_sample(struct recorder *recorder)
{
	sampler_tick(&recorder->sampler, env_now_ns(recorder->env), &recorder->queue.batch);
	running_energy_tick(&recorder->running, &recorder->sampler, recorder->start_ns);
	recorder->stop |= recorder->tree.cgroup != NULL && recorder->tree.listed == 0;
	bool crowded = recorder->tree.n_members > 2 * recorder->tree.n_pids + WRITE_QUEUE_PROCESSES / 4;
	if (crowded || recorder->sampler.last_t_ns - recorder->end_checked_ns >= end_check_period_ns)
		check_ended(recorder);
}

static void flush(struct recorder *recorder)
{
	int64_t t_ns = recorder->sampler.last_t_ns;
	bool due = t_ns - recorder->flushed_ns >= recorder->options->flush_ns;
	if (!due && !write_queue_is_nearly_full(&recorder->queue))
		return;
	check_ended(recorder);
	recorder_collect_spans(recorder);
	profiler_read(recorder->profiler);
	write_queue_flush(&recorder->queue);
	if (!due)
		return;
	recorder->flushed_ns = t_ns;
	if (t_ns - recorder->spill_checked_ns < spill_check_period_ns)
		return;
	recorder->spill_checked_ns = t_ns;
	if (recorder->options->maintain != NULL)
		recorder->options->maintain(recorder->options->data);
	write_queue_spans_update_spilling(&recorder->queue.spans);
	if (recorder->options->progress != NULL)
		recorder_report_progress(recorder);
}

/* ---- readings between ticks ---- */

static struct timespec timespec_of(int64_t t_ns)
{
	return (struct timespec){.tv_sec = t_ns / NS_PER_S, .tv_nsec = t_ns % NS_PER_S};
}

static void set_poll_timer(struct recorder *recorder)
{
	int64_t next_ns = poll_schedule_next_ns(&recorder->schedule, env_now_ns(recorder->env));
	const struct itimerspec spec = {.it_value = value_ok(next_ns) ? timespec_of(next_ns) : (struct timespec){0}};
	timerfd_settime(recorder->poll_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void on_poll(struct recorder *recorder)
{
	uint64_t expirations;
	if (read(recorder->poll_fd, &expirations, sizeof(expirations)) != (ssize_t)sizeof(expirations))
		return;
	devices_poll(&recorder->sampler, env_now_ns(recorder->env), &recorder->queue.batch);
	set_poll_timer(recorder);
}

// fd -1: retries the claims that are undecided.
static void on_claim(struct recorder *recorder, int fd)
{
	if (recorder_sensor_locks_turn(recorder, fd))
		set_poll_timer(recorder);
}

static void on_timer(struct recorder *recorder)
{
	uint64_t expirations; // reading also rearms the timer
	if (read(recorder->timer_fd, &expirations, sizeof(expirations)) != (ssize_t)sizeof(expirations))
		return;
	recorder->n_missed += (int64_t)expirations - 1;
	if (recorder->sensor_locks.n > 0)
		on_claim(recorder, -1);
	take_sample(recorder);
	flush(recorder);
}

/* A slow counter's value at the end is up to one period old. Its next update, a moment later, includes the energy up
 * to the end; signals wait meanwhile. A power reading afterwards shows whether power fell at the end, within that
 * period. */
static void poll_past_the_end(struct recorder *recorder)
{
	poll_schedule_finish(&recorder->schedule, recorder->start_ns, env_now_ns(recorder->env));
	for (bool any = false;; any = true) {
		int64_t next_ns = poll_schedule_last_ns(&recorder->schedule, env_now_ns(recorder->env));
		if (!value_ok(next_ns)) {
			if (any)
				devices_read_power(&recorder->sampler, env_now_ns(recorder->env),
					&recorder->queue.batch);
			return;
		}
		const struct timespec at = timespec_of(next_ns);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		devices_poll(&recorder->sampler, env_now_ns(recorder->env), &recorder->queue.batch);
	}
}

/* ---- ends and signals ---- */

// Waits for every ended process: the command, and orphans that the subreaper inherited.
static void reap(struct recorder *recorder)
{
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		pid_t pid = info.si_pid;
		struct process_stat stat; // as a zombie its own time and its children's are still separate
		pid_t shown_pid = tree_pid(&recorder->tree, pid);
		bool known = tree_read_stat(&recorder->tree, shown_pid, &stat) == 0;
		int status;
		struct rusage usage;
		if (wait4(pid, &status, WNOHANG, &usage) != pid)
			return;
		if (companion_is(recorder->env->companion, pid)) {
			recorder->env->companion->has_ended = true;
			continue;
		}
		int64_t t_ns = env_now_ns(recorder->env);
		bool childless = recorder->tree.n_seen <= 1 && known && stat.children_minor_faults == 0;
		tree_reaped(&recorder->tree, shown_pid, &usage, known ? &stat : NULL, t_ns);
		if (pid != recorder->pid)
			continue;
		recorder->main_ended = true;
		recorder->main_childless = childless;
		recorder->main_usage = usage;
		recorder->wait_status = status;
		recorder->end_ns = t_ns;
	}
}

// A companion is a child that outlives the target: then the current tree is read.
static bool tree_is_empty(struct recorder *recorder)
{
	siginfo_t info;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD)
		return true;
	if (recorder->env->companion == NULL)
		return false;
	struct tree_totals totals;
	tree_update(&recorder->tree, env_now_ns(recorder->env), &totals);
	return recorder->tree.n_pids == 0;
}

static void on_signal(struct recorder *recorder)
{
	recorder_read_signals(recorder);
	if (recorder->target == NULL)
		return;
	recorder_serve_spans(recorder); // before its parents are forgotten, and with the time of its end
	reap(recorder);
	bool wait_on = recorder->options->wait_all && !tree_is_empty(recorder);
	if (recorder->main_ended && !wait_on) {
		recorder->stop = true;
		recorder->end_ns = env_now_ns(recorder->env);
	}
}

static void on_root_end(struct recorder *recorder)
{
	if (recorder->target != NULL)
		on_signal(recorder);
	else
		recorder->stop = true;
}

/* ---- the loop ---- */

// Ticks are at start + n * interval, whatever a tick itself takes.
static void start_timer(struct recorder *recorder)
{
	int64_t interval_ns = recorder->options->sampler.interval_ns;
	struct itimerspec spec = {
		.it_value = timespec_of(recorder->start_ns + interval_ns),
		.it_interval = timespec_of(interval_ns),
	};
	timerfd_settime(recorder->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

// The cgroup becomes filled or empty. Its accounting is read first: it may be gone before the next sample is complete.
static void on_cgroup_event(struct recorder *recorder)
{
	tree_read_account(&recorder->tree);
	recorder->stop |= !cgroup_is_populated(recorder->options->cgroup);
}

static bool is_control(const struct recorder *recorder, int fd)
{
	return recorder->options->control != NULL && fd == recorder->options->control_fd;
}

static void loop(struct recorder *recorder)
{
	while (!recorder->stop) {
		struct epoll_event events[8];
		int n = epoll_wait(recorder->epoll_fd, events, ARRAY_SIZE(events), -1);
		recorder->n_wakeups++;
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == recorder->signal_fd)
				on_signal(recorder);
			else if (events[i].data.fd == recorder->cgroup_fd)
				on_cgroup_event(recorder);
			else if (recorder_roots_ended(recorder, events[i].data.fd))
				on_root_end(recorder);
			else if (is_control(recorder, events[i].data.fd))
				recorder->stop |= recorder->options->control(recorder->options->data);
			else if (events[i].data.fd == recorder->collector.epoll_fd)
				recorder_serve_spans(recorder);
			else if (events[i].data.fd == recorder->drain_fd)
				recorder_drain_spans(recorder);
			else if (recorder->profiler != NULL && events[i].data.fd == profiler_fd(recorder->profiler))
				profiler_read(recorder->profiler);
			else if (sensor_locks_has(&recorder->sensor_locks, events[i].data.fd))
				on_claim(recorder, events[i].data.fd);
			else if (!recorder->stop && events[i].data.fd == recorder->poll_fd)
				on_poll(recorder);
			else if (!recorder->stop)
				on_timer(recorder);
		}
		if (recorder->main_ended && !recorder->stop) // waits for orphans, whose SIGCHLD may be lost as well
			on_signal(recorder);
	}
}

/* ---- a recording ---- */

static bool must_hurry(void *data)
{
	return recorder_must_hurry(data, MERGE_TIMEOUT_NS);
}

static void record(struct recorder *recorder, struct recorder_result *result)
{
	recorder->flushed_ns = recorder->spill_checked_ns = recorder->progress_t_ns = recorder->start_ns;
	recorder->progress_energy_j = running_energy_j(&recorder->running);
	recorder->progress_n_known = recorder->running.n_known;
	start_timer(recorder);
	set_poll_timer(recorder);
	loop(recorder);
	if (recorder->end_ns == 0)
		recorder->end_ns = env_now_ns(recorder->env);
	recorder_read_outcome(recorder);
	profiler_finish(recorder->profiler);
	recorder->sampler.read_all = true; // analysis divides energy between two readings of the machine
	take_sample(recorder);
	check_ended(recorder);
	poll_past_the_end(recorder);
	sensor_locks_release(&recorder->sensor_locks);
	end_request_finish(&recorder->end_request, env_now_ns(recorder->env));
	recorder_finish_spans(recorder);
	if (recorder->options->progress != NULL)
		recorder_report_progress(recorder); // final state
	recorder_make_footer(recorder, &result->footer);
	result->footer.must_hurry = must_hurry;
	result->footer.must_hurry_data = recorder;
	write_queue_add_running(&recorder->queue, &recorder->tree);
	result->status = value_ok(result->footer.exit_code) ? (int)result->footer.exit_code : 0;
	result->whole = write_queue_finish(&recorder->queue, &result->footer);
	result->footer.must_hurry = NULL; // the recorder has ended
	int64_t n_spans = recorder->collector.recording.last_id;
	result->spans_to_leave = recorder->end_request.asked_ns != 0 && n_spans > DEADLINE_SPANS_MAX ? n_spans : 0;
	text_copy(result->loss, sizeof(result->loss), recorder->queue.loss);
}

// held: the target's process has not executed its command yet.
static int start_profiler(struct recorder *recorder, bool held, struct wattle_error *reterr)
{
	if (recorder->options->profile.hz == 0)
		return 0;
	int r = profiler_open(&recorder->options->profile, &recorder->tree, held ? recorder->pid : 0, &recorder->profiler,
		reterr);
	if (r < 0)
		return r;
	recorder->queue.profiler = recorder->profiler;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = profiler_fd(recorder->profiler)};
	if (epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) == 0)
		return 0;
	return error_set(reterr, -errno, "--profile: can't wait for samples: %s", strerror(errno));
}

static int start_command(struct recorder *recorder, const char *command, struct wattle_error *reterr)
{
	recorder->sampler.referee_fd = referee_open(recorder->pid);
	exits_open(&recorder->exits, &recorder->tree, on_exit_record, recorder);
	// The first sample is at the start: all counters, just before the command is released.
	recorder->sampler.target_held = true;
	take_sample(recorder);
	recorder->sampler.target_held = false;
	recorder->start_ns = recorder->sampler.last_t_ns;
	int r = start_profiler(recorder, true, reterr);
	if (r < 0)
		return r;
	r = target_release(recorder->target, command, recorder->ring_address, reterr);
	if (r != 0)
		return r;
	recorder->sampler.read_all = true;
	take_sample(recorder); // so that a command of a few milliseconds is seen once
	return 0;
}

int recorder_run(const struct wattle_env *env, struct sensor_set *sensors, struct target *target, const char *command,
	struct write_queue_sink *sinks, size_t n_sinks, const struct recorder_options *options,
	struct recorder_result *ret_result, struct wattle_error *reterr)
{
	*ret_result = (struct recorder_result){0};
	struct recorder *recorder = recorder_new(env, sensors, sinks, n_sinks, options);
	if (recorder == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	recorder->target = target;
	recorder->pid = target->pid;
	struct rusage self;
	getrusage(RUSAGE_SELF, &self);
	recorder->fork_floor_bytes = self.ru_maxrss * 1024;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* SIGCHLD goes to any thread that doesn't block it. A driver's library may have one (Go's runtime unblocks it in each
	 * thread), and then the signalfd never gets it. Without pidfds (before Linux 5.3) SIGCHLD alone must do. */
	(void)recorder_roots_open(recorder, target->pid, NULL);
	int r = recorder_open(recorder);
	if (r < 0)
		error_set(reterr, r, "can't start the recording: %s", strerror(-r));
	else
		r = start_command(recorder, command, reterr);
	if (r == 0)
		record(recorder, ret_result);
	recorder_close(recorder);
	return r;
}

int recorder_attach(const struct wattle_env *env, struct sensor_set *sensors, pid_t pid, struct write_queue_sink *sinks,
	size_t n_sinks, const struct recorder_options *options, struct recorder_result *ret_result,
	struct wattle_error *reterr)
{
	*ret_result = (struct recorder_result){0};
	struct recorder *recorder = recorder_new(env, sensors, sinks, n_sinks, options);
	if (recorder == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	recorder->pid = pid;
	int r = options->cgroup == NULL ? recorder_roots_open(recorder, pid, reterr) : 0;
	if (r == 0) {
		r = recorder_open(recorder);
		if (r < 0)
			error_set(reterr, r, "can't watch process %d: %s", pid, strerror(-r));
	}
	if (r < 0) {
		recorder_close(recorder);
		return r;
	}
	exits_open(&recorder->exits, &recorder->tree, on_exit_record, recorder);
	recorder->sampler.target_held = options->held;
	take_sample(recorder);
	recorder->sampler.target_held = false;
	recorder->start_ns = recorder->sampler.last_t_ns;
	r = start_profiler(recorder, options->held, reterr);
	if (r < 0) {
		recorder_close(recorder);
		return r;
	}
	if (options->ready != NULL)
		options->ready(options->data, recorder->ring_address);
	record(recorder, ret_result);
	recorder_close(recorder);
	return 0;
}
