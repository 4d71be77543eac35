/* wattle cap set … -- CMD: limits last as long as the command. Standard streams, forwarded signals and the exit status are as
 * for `wattle run`. */
#include "cli/cap.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "cli/command.h"
#include "sampler/target.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static void pass_on(int signal_fd, pid_t pid)
{
	struct signalfd_siginfo info;
	while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD && !target_has_signal((int)info.ssi_signo, info.ssi_code))
			kill(pid, (int)info.ssi_signo);
}

// Restarts a guard that was killed. A limit changed by another process is reported at the end, and that process's limit stays.
static void maintain(const struct cap_limits *limits)
{
	for (size_t i = 0; i < limits->n; i++) {
		struct cap_outcome outcome;
		int r = cap_hold_check(limits->at[i].hold, &outcome);
		if (r != 1 && outcome.text[0] != '\0')
			cli_warn(outcome.text);
	}
}

// A descriptor that stays readable would cause a busy loop: it is polled once more, and then no longer.
static size_t check_holds(const struct cap_limits *limits, struct pollfd *fds)
{
	size_t n = 0;
	for (size_t i = 0; i < limits->n; i++) {
		int fd = cap_hold_fd(limits->at[i].hold);
		bool known = fd < 0;
		for (size_t j = 0; j < n; j++)
			known |= fds[j].fd == fd;
		if (!known)
			fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	return n;
}

static bool any_readable(struct pollfd *fds, size_t n)
{
	return n > 0 && poll(fds, n, 0) > 0;
}

static int wait_for(struct cap_limits *limits, pid_t pid, int signal_fd)
{
	struct pollfd fds[1 + CAP_LIMITS_MAX] = {{.fd = signal_fd, .events = POLLIN}};
	size_t n = check_holds(limits, fds + 1);
	for (;;) {
		int status;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (poll(fds, 1 + n, -1) < 0 && errno != EINTR)
			return EXIT_OWN_FAILURE;
		pass_on(signal_fd, pid);
		if (!any_readable(fds + 1, n))
			continue;
		maintain(limits);
		n = check_holds(limits, fds + 1);
		if (any_readable(fds + 1, n))
			n = 0; // the guard could not be restarted, which has been reported
	}
}

// Releases the held command; an error has its own exit status.
static int run_held(const struct cap_set_options *values, struct cap_limits *limits, struct target *target)
{
	struct wattle_error error = {0};
	sigset_t taken;
	target_signals(&taken);
	wattle_cleanup_close int signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0) {
		target_abandon(target);
		error_set(&error, -errno, "can't create a signal descriptor: %s", strerror(errno));
		return cli_fail(EXIT_OWN_FAILURE, &error);
	}
	int r = target_release(target, values->command[0], "", &error);
	if (r != 0)
		return cli_fail(r > 0 ? r : EXIT_OWN_FAILURE, &error);
	return wait_for(limits, target->pid, signal_fd);
}

static int run_limited(const struct cap_set_options *values, struct cap_limits *limits, struct target *target)
{
	struct wattle_error error = {0};
	struct cap_outcome outcomes[CAP_LIMITS_MAX];
	char rest[160];
	int r = cap_limits_open(limits, "wattle cap set", &error);
	if (r == 0)
		r = cap_set_choose(values, limits, &error);
	if (r == 0)
		r = cap_limits_acquire(limits, outcomes, &error);
	if (r < 0) {
		target_abandon(target);
		return cli_fail(EXIT_OWN_FAILURE, &error);
	}
	snprintf(rest, sizeof(rest), "; until %.100s ends", values->command[0]);
	cap_set_print(values, limits, outcomes, rest);
	return run_held(values, limits, target);
}

/* The command is forked and held first, before driver libraries are loaded: it inherits none of our state, and if we die before
 * releasing it, it exits without having executed anything. */
int cap_set_run(const struct cap_set_options *values)
{
	struct wattle_error error = {0};
	struct cap_limits limits;
	struct target target;
	char *const environment[] = {NULL};
	if (target_start(&target, values->command, environment, &error) < 0)
		return cli_fail(EXIT_OWN_FAILURE, &error);
	/* After the fork, because the command keeps the default action. While a limit is set, a closed stderr or a command
	 * killed while held must not terminate wattle. */
	signal(SIGPIPE, SIG_IGN);
	int status = run_limited(values, &limits, &target);
	cap_limits_close(&limits);
	return status;
}
