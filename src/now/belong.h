/* To which job of a scheduler and to which cgroup a process belongs. */
#pragma once

#include "base/env.h"
#include "now/now.h"

#include <stdbool.h>
#include <stddef.h>

struct belonging {
	char names[NOW_GROUPINGS][NOW_GROUP_SIZE]; // ""; none, or not known
	uid_t job_uid;                             // whose the job is, where that is told; (uid_t)-1
};

/* Reads /proc/PID/cgroup, and where that tells of no job /proc/PID/environ, which only the same user and root may. scratch: of
 * BELONG_SCRATCH bytes. False: nothing could be read, and *ret is all unknown. */
enum { BELONG_SCRATCH = 1 << 16 };
bool belong_find(const struct wattle_env *env, pid_t pid, bool wants_job, char *scratch, struct belonging *ret);

/* ---- pure halves ---- */

// The lines of /proc/PID/cgroup, changed in place.
void belong_read_cgroups(char *text, struct belonging *ret);
// The variables of /proc/PID/environ, a NUL after each.
void belong_read_environment(const char *text, size_t size, struct belonging *ret);
