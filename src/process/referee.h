/* A second opinion on the target's CPU time: one perf task-clock event on the root, inherited by all that it starts.
 * It needs no privilege for one's own child, and it counts children that nobody waited for. It also counts what rusage
 * leaves out (under load it read 7 % more in a trial), so it is the referee, not the figure. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

// Counts from the next exec of `pid`. Descriptor, or negative errno: seccomp, perf_event_paranoid 3, no perf.
int referee_open(pid_t pid);
int64_t referee_read_ns(int fd); // VALUE_MISSING if it can't be read
