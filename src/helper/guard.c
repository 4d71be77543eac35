#include "helper/helper.h"

#include "base/util.h"
#include "cap/journal.h"
#include "cap/lease.h"
#include "helper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_stop(int *ret_fd)
{
	// A terminal sends these to both processes at once. Limits are restored before the end; SIGHUP does not end wattled.
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

int guard_split(struct guard *ret_guard, struct wattle_error *reterr)
{
	int ready[2], stop_fd;
	int r = open_stop(&stop_fd);
	if (r < 0)
		return error_set(reterr, r, "signalfd: %s", strerror(-r));
	if (pipe2(ready, O_CLOEXEC) < 0) {
		r = -errno;
		close(stop_fd);
		return error_set(reterr, r, "pipe: %s", strerror(-r));
	}
	signal(SIGCHLD, SIG_DFL); // if the parent process ignored it, waiting would be impossible
	pid_t pid = fork();
	if (pid < 0) {
		r = -errno;
		close(stop_fd);
		close(ready[0]);
		close(ready[1]);
		return error_set(reterr, r, "fork: %s", strerror(-r));
	}
	close(ready[pid == 0 ? 0 : 1]);
	*ret_guard = (struct guard){.pid = pid, .pipe_fd = ready[pid == 0 ? 1 : 0], .stop_fd = stop_fd};
	return 0;
}

void guard_close(struct guard *guard)
{
	if (guard->pipe_fd >= 0)
		close(guard->pipe_fd);
	if (guard->stop_fd >= 0)
		close(guard->stop_fd);
	guard->pipe_fd = guard->stop_fd = -1;
}

void guard_send_ready(struct guard *guard, const char *status)
{
	ssize_t written = write(guard->pipe_fd, status, strlen(status));
	(void)written; // the pipe also shows that the guard has exited
}

/* ---- guard process ---- */

static void log_message(void *data, const char *text)
{
	log_line(LOG_LEVEL_NOTICE, "%s", text);
}

// Reads from the pipe whether the serving process is ready or has exited.
static void on_ready(struct guard *guard)
{
	char status[200];
	ssize_t n = read(guard->pipe_fd, status, sizeof(status) - 1);
	if (n > 0) {
		status[n] = '\0';
		notify("READY=1\nSTATUS=%s", status);
		return;
	}
	close(guard->pipe_fd);
	guard->pipe_fd = -1;
}

static void on_signal(struct guard *guard)
{
	struct signalfd_siginfo info;
	if (read(guard->stop_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) { // systemd and admins send it to this process, which is the main one
		kill(guard->pid, SIGHUP);
		return;
	}
	notify("STOPPING=1");
	// SIGCONT first: it undoes a stop that is under way, which would leave a debugger of the ending process waiting.
	kill(guard->pid, SIGCONT); // also if it was stopped
	kill(guard->pid, SIGTERM); // the serving process restores; this one waits for it
}

static int wait_for_end(struct guard *guard, int pidfd)
{
	struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN}, {.fd = guard->stop_fd, .events = POLLIN},
		{.fd = guard->pipe_fd, .events = POLLIN}};
	int status = 0;
	for (;;) {
		fds[2].fd = guard->pipe_fd;
		if (poll(fds, ARRAY_SIZE(fds), pidfd < 0 ? 100 : -1) < 0 && errno != EINTR)
			return EXIT_FAILURE;
		if (fds[2].revents != 0)
			on_ready(guard);
		if (fds[1].revents != 0)
			on_signal(guard);
		if (waitpid(guard->pid, &status, WNOHANG) != 0)
			break;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	log_line(LOG_LEVEL_ERROR, "signal %d ended the server process; its limits are restored",
		WTERMSIG(status));
	return EXIT_FAILURE;
}

int guard_wait(struct guard *guard, const struct wattle_env *env)
{
	struct cap_devices devices;
	struct sandbox_report report;
	struct journal journal;
	int pidfd = (int)syscall(SYS_pidfd_open, guard->pid, 0);
	// Starting NVML may take seconds. Opened now and never closed, it is ready when needed.
	cap_devices_open(&devices, env, NULL);
	// Landlock needs an existing folder, and the serving process may not have created it yet.
	if (devices.n > 0 && journal_open(env, true, &journal, NULL) == 0)
		journal_close(&journal);
	const struct sandbox_needs needs = {env, &devices, limits_need_admin(&devices), ""};
	// The serving process reports the same failure.
	if (sandbox_enter(&needs, &report, NULL) < 0)
		kill(guard->pid, SIGTERM);
	int status = wait_for_end(guard, pidfd);
	cap_recover(env, log_message, NULL);
	cap_devices_close(&devices);
	if (pidfd >= 0)
		close(pidfd);
	return status;
}
