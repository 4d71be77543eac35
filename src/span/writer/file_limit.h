/* How long files of this process may become (RLIMIT_FSIZE), memory files too: beyond it the kernel sends a signal that ends
 * the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

static inline bool span_file_may_have(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}
