#include "sampler/target.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

void target_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
		sigaddset(ret_set, passed_on[i]);
}

bool target_has_signal(int number, int code)
{
	// Closing a terminal signals only the session leader, and a shell would pass the signal to its jobs.
	bool is_ours_to_pass_on = number == SIGHUP && getsid(0) == getpid();
	return code == SI_KERNEL && !is_ours_to_pass_on;
}

static void child(const struct target *target, int hold_fd, int exec_fd, char *const *argv, char *const *environment)
{
	char ring[TARGET_RING_SIZE];
	ssize_t n;
	do
		n = read(hold_fd, ring, sizeof(ring));
	while (n < 0 && errno == EINTR);
	if (n < 1 || ring[n - 1] != '\0') // the recorder gave up or died
		_exit(EXIT_OWN_FAILURE);
	sigaction(SIGCHLD, &target->original_sigchld, NULL);
	sigprocmask(SIG_SETMASK, &target->original_mask, NULL);
	for (; *environment != NULL; environment++)
		putenv(*environment);
	if (ring[0] != '\0')
		setenv("WATTLE_RING", ring, 1);
	execvp(argv[0], argv);
	int32_t code = errno;
	ssize_t written = write(exec_fd, &code, sizeof(code));
	_exit(written == sizeof(code) ? EXIT_NOT_FOUND : EXIT_OWN_FAILURE);
}

static int open_pipes(int hold[2], int exec[2])
{
	if (pipe2(hold, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(exec, O_CLOEXEC) == 0)
		return 0;
	int code = -errno;
	close(hold[0]);
	close(hold[1]);
	return code;
}

int target_start(struct target *target, char *const *argv, char *const *environment, struct wattle_error *reterr)
{
	int hold[2], exec[2];
	int r = open_pipes(hold, exec);
	if (r < 0)
		return error_set(reterr, r, "can't create a pipe: %s", strerror(-r));
	sigset_t taken;
	target_signals(&taken);
	sigprocmask(SIG_BLOCK, &taken, &target->original_mask);
	// Started with SIGCHLD ignored (some daemons do that to their children), the recorder would see no exit.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &target->original_sigchld);
	target->pid = fork();
	if (target->pid == 0) {
		close(hold[1]);
		close(exec[0]);
		child(target, hold[0], exec[1], argv, environment);
	}
	int code = errno;
	close(hold[0]);
	close(exec[1]);
	target->hold_fd = hold[1];
	target->exec_fd = exec[0];
	if (target->pid > 0)
		return 0;
	close(target->hold_fd);
	close(target->exec_fd);
	return error_set(reterr, -code, "can't start a process: %s", strerror(code));
}

// execvp returns ENOENT also for a script whose interpreter is missing: that script was found.
static bool is_found(const char *command)
{
	struct stat st;
	if (strchr(command, '/') != NULL)
		return stat(command, &st) == 0;
	const char *path = getenv("PATH");
	if (path == NULL)
		return false;
	for (const char *at = path;; at++) {
		size_t length = strcspn(at, ":");
		char file[4096];
		// An empty element means the working directory.
		int n = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, at, length > 0 ? "/" : "", command);
		if (n > 0 && (size_t)n < sizeof(file) && stat(file, &st) == 0)
			return true;
		at += length;
		if (*at == '\0')
			return false;
	}
}

int target_release(struct target *target, const char *command, const char *ring, struct wattle_error *reterr)
{
	ssize_t n;
	do
		n = write(target->hold_fd, ring, strlen(ring) + 1); // a pipe takes so little at once
	while (n < 0 && errno == EINTR);
	close(target->hold_fd);
	int32_t code = 0;
	do
		n = read(target->exec_fd, &code, sizeof(code)); // end of file: exec has closed it
	while (n < 0 && errno == EINTR);
	close(target->exec_fd);
	target->hold_fd = target->exec_fd = -1;
	if (n != sizeof(code))
		return 0;
	waitpid(target->pid, NULL, 0);
	bool missing = (code == ENOENT || code == ENOTDIR) && !is_found(command);
	if (missing)
		return error_set(reterr, EXIT_NOT_FOUND, "%s: command not found", command);
	if (code == ENOENT)
		return error_set(reterr, EXIT_NOT_EXECUTABLE, "%s: its interpreter is missing", command);
	return error_set(reterr, EXIT_NOT_EXECUTABLE, "%s: can't be executed: %s", command, strerror(code));
}

void target_abandon(struct target *target)
{
	if (target->hold_fd >= 0)
		close(target->hold_fd);
	if (target->exec_fd >= 0)
		close(target->exec_fd);
	target->hold_fd = target->exec_fd = -1;
	waitpid(target->pid, NULL, 0);
}
