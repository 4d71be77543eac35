#include "sampler/recorder.h"

#include "sampler/sampler.h"

#include <sys/epoll.h>

// Adding a watched descriptor again fails; the kernel has removed closed ones.
static void watch(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->sensor_locks.n; i++) {
		int fd = sensor_locks_fd(&recorder->sensor_locks, i);
		struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
		if (fd >= 0)
			epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	}
}

/* Claimed sensors are read at once. Recorders that find them claimed start later, so these readings cover their whole
 * run, however long this recorder takes until its first sample. */
int recorder_sensor_locks_open(struct recorder *recorder)
{
	const struct recorder_options *options = recorder->options;
	int r = sensor_locks_open(&recorder->sensor_locks, &recorder->sampler, options->shares_with, options->rank,
		recorder->pid);
	if (r < 0 || recorder->sensor_locks.n == 0)
		return r;
	devices_poll(&recorder->sampler, env_now_ns(recorder->env), &recorder->queue.batch);
	watch(recorder);
	return 0;
}

// Taken-over sensors are read at once, so that little time lies between the last reading of the previous owner and the
// first one here.
bool recorder_sensor_locks_turn(struct recorder *recorder, int fd)
{
	bool took;
	int64_t t_ns = env_now_ns(recorder->env);
	if (!sensor_locks_turn(&recorder->sensor_locks, fd, t_ns, &took))
		return false;
	watch(recorder);
	if (!took)
		return false;
	devices_poll(&recorder->sampler, t_ns, &recorder->queue.batch);
	poll_schedule_restart(&recorder->schedule, t_ns);
	return true;
}
