/* The recorder of a task, from its fork out of slurmstepd to its exec as the job's user. */
#pragma once

#include "spank/settings.h"
#include "spank/task_line.h"

#include <stdint.h>
#include <sys/types.h>

// What the task sends: this, its environment and its command, each text with its NUL.
struct task_greeting {
	uint32_t umask, n_variables, n_words, reserved;
	uint64_t size; // of all texts
};

struct recorder_start {
	const struct settings *settings;
	const struct task_owner *owner;
	pid_t task;
	const char *step;
	int control_fd, error_fd;
	pid_t keeper; // set by the keeper: the parent of the recorder
};

_Noreturn void recorder_start(const struct recorder_start *start);

// user.c: from root to the job's user for good, in its folder, in a session of its own, signals as after an exec. Negative errno.
int become_owner(const struct task_owner *owner);
