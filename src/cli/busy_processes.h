/* Which programs kept the processors busy meanwhile: two looks at /proc and the difference. */
#pragma once

#include "base/buf.h"
#include "base/env.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct busy_process {
	pid_t pid;
	uint64_t start_ticks;
	int64_t cpu_ns;
	char name[32];
};

struct busy_processes {
	struct busy_process *all; // owned; ascending pids
	size_t n, capacity;
};

// What can't be read is left out; never fails.
void busy_processes_look(struct busy_processes *processes, const struct wattle_env *env);
void busy_processes_finish(struct busy_processes *processes);
// "cc1plus (4711), python3 (99)": those that used most CPU time between the two looks, at most three and none that used
// less than a tenth of what the first one did; wattle itself is left out. Nothing if nobody used any.
void busy_processes_name(const struct busy_processes *before, const struct busy_processes *after, struct buf *out);
