/* The kernel's clocks, for waits and time-outs that involve other processes, and for the cost of this process. Measurements
 * use the clocks of env (env.h), which tests can replace. */
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

static inline int64_t clock_cpu_ns(void) // CPU time of this process since its start
{
	return clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
}
