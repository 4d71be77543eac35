/* Two processes, each of which restores all limits when the other dies.
 *
 * The one that was started is the guard: it forks the one that serves before either has opened a device (NVML does
 * not survive a fork) and waits. When the serving one ends, however it ends, the guard restores what it left behind,
 * as every start does (cap_recover). When the guard is killed, the serving one is told by the kernel, restores what
 * clients hold, and ends; systemd starts both again. So neither has to start programs, and both can do without that
 * right. */
#pragma once

#include "base/env.h"

#include <sys/types.h>

struct guard {
	pid_t pid;    // of the process that serves; 0: this is it
	int ready_fd; // owned; a pipe's end: the serving process says that it is ready
	/* Owned; a signalfd: SIGTERM, SIGINT, SIGHUP, SIGQUIT, and for the serving process SIGUSR1, which says that its
	 * guard died. */
	int stop_fd;
};

// Returns in both processes.
int guard_split(struct guard *ret_guard, struct wattle_error *reterr);
// In the serving process. `status` is what systemd shows.
void guard_tell_ready(struct guard *guard, const char *status);
// In the guard: returns the exit status of both, after the serving process's death and the restoring.
int guard_wait(struct guard *guard, const struct wattle_env *env);
void guard_close(struct guard *guard);
