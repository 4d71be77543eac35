/* Two processes, each of which restores all limits when the other dies.
 *
 * The one that was started is the guard: it forks the one that serves before either has opened a device (NVML does
 * not survive a fork) and waits. When the serving one ends, however it ends, the guard restores what it left behind,
 * as every start does (cap_recover). When the guard is killed, the pipe between them breaks: the serving one restores
 * what clients hold, and ends; systemd starts both again. So neither has to start programs, and both can do without that
 * right. */
#pragma once

#include "base/env.h"

#include <sys/types.h>

struct guard {
	pid_t pid;   // of the process that serves; 0: this is it
	int pipe_fd; // owned; the serving process writes once, when it is ready; the end of either closes its end
	int stop_fd; // owned; a signalfd: SIGTERM, SIGINT, SIGHUP, SIGQUIT
};

// Returns in both processes.
int guard_split(struct guard *ret_guard, struct wattle_error *reterr);
// In the serving process. `status` is what systemd shows.
void guard_tell_ready(struct guard *guard, const char *status);
// In the guard: returns the exit status of both, after the serving process's death and the restoring.
int guard_wait(struct guard *guard, const struct wattle_env *env);
void guard_close(struct guard *guard);
