/* The line between a task that is to be measured, slurmstepd that starts and awaits it, and its recorder.
 *
 * All of it is made before Slurm forks the tasks. Then, for each task:
 *
 *   slurmstepd, when tasks are forked and held back    task_line_start: forks what will be the recorder and its keeper, outside of
 *                                                      the task and of what Slurm gives it (binding, limits, control groups)
 *   the task, just before it executes its program      task_line_join: tells the recorder its environment, and waits until that has
 *                                                      taken the first sample
 *   slurmstepd, when the task has ended                task_line_ended, and when all have: task_lines_finish, which also ends
 *                                                      all that recorders have started
 *
 * The recorder is `wattle attach`, as the job's user; it sees what every recorder of a task in that job sees. */
#pragma once

#include "base/error.h"
#include "lib/tracker_wire.h"
#include "spank/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct task_line {
	int fd;                 // owned: our end; the task's and slurmstepd's. -1: this task is not measured
	int recorder_fd;        // owned: the recorder's end; -1 handed over
	int said_fd, saying_fd; // owned: a pipe that is the recorder's standard error; -1 closed
	int keeper_fd;  // owned: to the keeper (keeper.h), whose end is its end; our end of it is an order to end
	int keeping_fd; // owned: the keeper's end; -1 handed over
};

struct task_owner { // who the recorder is to be
	uid_t uid;
	gid_t gid;
	const gid_t *groups; // n_groups; borrowed
	size_t n_groups;
	int folder_fd; // where it works; borrowed; -1 where we are
};

int task_line_open(struct task_line *line); // negative errno; *line is closed then
void task_line_close(struct task_line *line);

// step: "0", "batch". The line is closed where nothing could be started.
int task_line_start(struct task_line *line, const struct settings *settings, const struct task_owner *owner, pid_t task,
	const char *step, struct wattle_error *reterr);

/* In the task `index` of n. environment, command: NULL-terminated. ret_ring: what WATTLE_RING is to be, "" if there is none.
 * A negative errno with a sentence: it is not measured. */
int task_line_join(struct task_line *lines, size_t n, size_t index, char **environment, char **command,
	int64_t ready_ns, char *ret_ring, size_t size, struct wattle_error *reterr);

/* The task is no more; what is known of its end, NULL nothing. Without this a recorder that was never joined would wait on, and any
 * other one not know how its task has ended. */
void task_line_ended(struct task_line *line, const struct tracker_ended *ended);
/* Waits until all recorders have ended, at most so long, and ends those that have not. told: one line of what a recorder has to
 * say. Returns how many were still at it; all lines are closed. */
size_t task_lines_finish(struct task_line *lines, size_t n, int64_t wait_ns, void (*told)(const char *text));
