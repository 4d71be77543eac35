/* The kernel's own clocks: for waits and time-outs, where another process is waited for, and what this one has cost. What is measured has
 * env's (env.h), which tests put in its place. */
#pragma once

#include "base/util.h"

#include <time.h>

static inline int64_t clock_of_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline int64_t clock_now_ns(void)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_wall_ns(void) // Unix time
{
	return clock_of_ns(CLOCK_REALTIME);
}

static inline int64_t clock_cpu_ns(void) // of this process, since it started
{
	return clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
}
