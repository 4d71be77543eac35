/* Starts wattle (a recorder, a guard) from a program that must not be disturbed: it may have threads, SIGCHLD handlers, a
 * loop around wait(-1), descriptors that must not leak into another process, gigabytes of memory.
 *
 * The new process is therefore the orphan of an intermediate process, which has no exit signal (no SIGCHLD; only a wait with
 * __WALL sees it) and ends at once. Both share the program's memory until the new process calls exec, while the calling
 * thread is suspended: nothing is copied, however large the program is. If the program inherits orphans (PID 1 of a
 * container, PR_SET_CHILD_SUBREAPER) the new process still becomes its child. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { SPAWN_CONTROL_FD = 3 }; // descriptor of the control connection in the new process

struct spawn {
	const char *program;
	char *const *argv, *const *environment;
	int control_fd; // must be above SPAWN_CONTROL_FD
	bool quiet;     // redirect stderr to /dev/null
};

/* The new process leads its own session (a Ctrl-C in the terminal must not end it before the program). It has no descriptor
 * of the program except stderr, and no signal is handled, ignored or blocked. Returns its pid, or a negative errno, including
 * that of exec. Returns 0 if the pid is unknown: under valgrind and emulators that copy the memory in spite of CLONE_VM. */
pid_t spawn_detached(const struct spawn *spawn);
