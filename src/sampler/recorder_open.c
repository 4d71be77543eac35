/* Opens what a recorder needs before its first sample, and closes it after the last one. */
#include "sampler/recorder.h"

#include "base/util.h"
#include "process/cgroup.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { BATCH_SECONDS = 4, BATCH_MIN = 256 * 1024, BATCH_MAX = 16 * 1024 * 1024, PROCESSES_GUESSED = 128 };

struct recorder *recorder_new(const struct wattle_env *env, struct sensor_set *sensors, struct write_queue_sink *sinks,
	size_t n_sinks, const struct recorder_options *options)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	if (recorder == NULL)
		return NULL;
	*recorder = (struct recorder){
		.env = env,
		.options = options,
		.sensors = sensors,
		.epoll_fd = -1,
		.timer_fd = -1,
		.poll_fd = -1,
		.signal_fd = -1,
		.drain_fd = -1,
		.collector = {.epoll_fd = -1, .listener.fd = -1},
		.cgroup_fd = options->cgroup != NULL ? options->cgroup->events_fd : -1,
		.sampler = {.referee_fd = -1, .machine = {.stat.fd = -1, .meminfo.fd = -1}},
		.tree.procfs_fd = -1,
		.exits.fd = -1,
		.exits.main_peak_bytes = VALUE_MISSING,
		.queue = {.sinks = sinks,
			.n_sinks = n_sinks,
			.sampler = &recorder->sampler,
			.warn = options->warn,
			.warn_data = options->data},
	};
	return recorder;
}

static size_t batch_capacity(const struct recorder *recorder)
{
	double ticks = BATCH_SECONDS * (double)NS_PER_S / (double)recorder->options->sampler.interval_ns + 4;
	double tick_bytes = sizeof(struct record) + RUN_COUNT * sizeof(int64_t) +
		(double)recorder->sensors->n_devices * (sizeof(struct record) + DEVICE_COUNT * sizeof(int64_t));
	if (recorder->options->sampler.per_process)
		tick_bytes += (double)PROCESSES_GUESSED * (sizeof(struct record) + PROCESS_COUNT * sizeof(int64_t));
	double bytes = ticks * tick_bytes;
	if (bytes < BATCH_MIN)
		return BATCH_MIN;
	return bytes < BATCH_MAX ? (size_t)bytes : BATCH_MAX;
}

static void raise_file_limit(void)
{
	struct rlimit limit; // two descriptors for each process of the target; the command itself keeps the old limit
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

struct sched_slice { // struct sched_attr of <linux/sched/types.h>, which cannot be included beside <sched.h>
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Among hundreds of busy processes a sample must not wait for seconds to be scheduled. From Linux 6.12 on a task may
 * request a shorter slice, and is scheduled sooner; a lower nice value needs a privilege. Both cost the target only
 * the time that a sample takes anyway. The command was forked before this and keeps its settings. */
static void hurry(void)
{
	const struct sched_slice slice = {.size = sizeof(slice),
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime_ns = 100000};
	syscall(SYS_sched_setattr, 0, &slice, 0);
	setpriority(PRIO_PROCESS, 0, slice.nice - 10);
}

/* ---- open ---- */

// A domain that exists but is unreadable is missing from the total: the run must report it.
static void report_unread(struct recorder *recorder)
{
	for (size_t s = 0; s < recorder->sensors->n_slots; s++) {
		const struct sensor_slot *slot = &recorder->sensors->slots[s];
		for (size_t i = 0; i < slot->n_domains; i++) {
			const struct domain *domain = &slot->domains[i];
			if (domain->readable || domain->unwanted || !domain_kind_adds_up(domain->kind))
				continue;
			struct event event = event_make(EVENT_WARNING_SENSOR, env_now_ns(recorder->env));
			event.device = domain->name;
			event.sensor = slot->ops->name;
			event.detail = domain->why;
			sampler_event(&recorder->sampler, &event);
		}
	}
}

static int watch_for(struct recorder *recorder, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};
	return epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int watch(struct recorder *recorder, int fd)
{
	return watch_for(recorder, fd, EPOLLIN);
}

static int open_loop(struct recorder *recorder)
{
	sigset_t taken;
	target_signals(&taken);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	recorder->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	recorder->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	recorder->poll_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	recorder->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (recorder->epoll_fd < 0 || recorder->timer_fd < 0 || recorder->poll_fd < 0 || recorder->signal_fd < 0)
		return -errno;
	int r = watch(recorder, recorder->timer_fd);
	if (r == 0)
		r = watch(recorder, recorder->poll_fd);
	if (r == 0)
		r = watch(recorder, recorder->signal_fd);
	if (r == 0)
		r = recorder_roots_watch(recorder);
	if (recorder->cgroup_fd >= 0) // files of simulated trees send no events: the ticks check as well
		watch_for(recorder, recorder->cgroup_fd, EPOLLPRI);
	if (r == 0 && recorder->options->control != NULL)
		r = watch(recorder, recorder->options->control_fd);
	return r;
}

int recorder_open(struct recorder *recorder)
{
	hurry();
	raise_file_limit();
	bool attached = recorder->target == NULL;
	struct cgroup *cgroup = recorder->options->cgroup;
	int r = cgroup != NULL ? tree_open_cgroup(&recorder->tree, recorder->env, cgroup)
			       : tree_open(&recorder->tree, recorder->env, recorder->pid, attached ? 0 : getpid());
	if (r == 0)
		r = tree_follow_too(&recorder->tree, recorder->options->also, recorder->options->n_also);
	if (r == 0)
		r = sampler_open(&recorder->sampler, recorder->env, recorder->sensors, &recorder->tree,
			&recorder->options->sampler);
	if (r == 0)
		r = write_queue_open(&recorder->queue, batch_capacity(recorder));
	if (r == 0)
		r = poll_schedule_open(&recorder->schedule, &recorder->sampler, env_now_ns(recorder->env));
	if (r == 0)
		r = open_loop(recorder);
	if (r == 0)
		r = recorder_sensor_locks_open(recorder);
	if (r == 0 && recorder->options->progress != NULL)
		r = running_energy_open(&recorder->running, &recorder->sampler);
	if (r == 0)
		recorder_spans_open(recorder);
	if (r == 0)
		report_unread(recorder);
	return r;
}

void recorder_close(struct recorder *recorder)
{
	const int fds[] = {recorder->epoll_fd, recorder->timer_fd, recorder->poll_fd, recorder->signal_fd,
		recorder->sampler.referee_fd};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	recorder_roots_close(recorder);
	recorder_spans_close(recorder);
	profiler_close(recorder->profiler);
	exits_close(&recorder->exits);
	sensor_locks_close(&recorder->sensor_locks);
	poll_schedule_close(&recorder->schedule);
	running_energy_close(&recorder->running);
	sampler_close(&recorder->sampler);
	tree_close(&recorder->tree);
	write_queue_close(&recorder->queue);
	free(recorder);
}
