/* Starts wattle (a recorder, a guard) out of a program that must not notice: it may have threads, handlers of SIGCHLD,
 * a loop around wait(-1), descriptors that must not live on in another process, gigabytes of memory.
 *
 * So the new process is the orphan of a process in between, which has no exit signal (no SIGCHLD; only a wait with
 * __WALL meets it) and ends at once. Both share the program's memory until the new one has replaced itself, while the
 * calling thread stands still: nothing is copied, however large the program is. Where the program inherits orphans (PID
 * 1 of a container, PR_SET_CHILD_SUBREAPER) the new process becomes its child all the same. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { SPAWN_CONTROL_FD = 3 }; // where the new process finds its end of the line

struct spawn {
	const char *program;
	char *const *argv, *const *environment;
	int control_fd; // above SPAWN_CONTROL_FD
	bool quiet;     // stderr goes nowhere
};

/* The new process leads a session of its own (a Ctrl-C in the terminal must not end it before the program), has no
 * descriptor of the program but stderr, no signal handled, ignored or blocked. Its pid, or negative errno, of exec too;
 * 0: unknown, under valgrind and emulators that copy the memory all the same. */
pid_t spawn_detached(const struct spawn *spawn);
