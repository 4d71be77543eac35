// Waiting, and handling of events meanwhile.
#include "cli/cap_tune.h"

#include "base/clock.h"
#include "base/util.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static bool take_signals(struct tune_search *search)
{
	struct signalfd_siginfo info;
	while (read(search->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) {
			search->signals->stopped_by = (int)info.ssi_signo;
			search->is_from_terminal = info.ssi_code == SI_KERNEL;
		}
	return search->signals->stopped_by != 0;
}

static size_t watch(const struct tune_search *search, struct pollfd *fds)
{
	const struct tune_group *group = search->group;
	size_t n = 0;
	fds[n++] = (struct pollfd){.fd = search->signal_fd, .events = POLLIN};
	for (size_t i = 0; i < group->n; i++) {
		const struct cap_hold *hold = group->devices->at[group->first + i].hold;
		fds[n++] = (struct pollfd){.fd = hold != NULL ? cap_hold_fd(hold) : -1, .events = POLLIN};
	}
	return n;
}

static bool any_ready(const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i].revents != 0)
			return true;
	return false;
}

enum tune_event tune_wait(struct tune_search *search, int64_t until_ns)
{
	bool has_child = search->recorder->pid != 0, has_checked = false;
	for (;;) {
		struct pollfd fds[1 + TUNE_DEVICES];
		if (take_signals(search))
			return TUNE_STOPPED;
		if (has_child && tune_recorder_has_ended(search->recorder))
			return search->recorder->status == 0 ? TUNE_ENDED : TUNE_FAILED;
		int64_t left_ns = until_ns - clock_now_ns();
		if (left_ns <= 0)
			return TUNE_GOES_ON;
		const struct timespec left = {left_ns / NS_PER_S, left_ns % NS_PER_S};
		size_t n = watch(search, fds);
		int ready = ppoll(fds, has_checked ? 1 : n, &left, NULL);
		if (ready <= 0 || !any_ready(fds + 1, has_checked ? 0 : n - 1))
			continue;
		int r = tune_group_check(search->group, &search->error); // a guard has died: starts another one
		if (r != 0)
			return r > 0 ? TUNE_CHANGED : TUNE_BROKEN;
		has_checked = true; // once per wait: the cause may persist
	}
}
