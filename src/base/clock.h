/* The kernel's own clock, for waits and time-outs, where another process is waited for. What is measured has env's (env.h), which tests
 * put in its place. */
#pragma once

#include "base/util.h"

#include <time.h>

static inline int64_t clock_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}
