#include "base/descriptors.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 1 << 20 };

void close_from(int first)
{
	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	struct rlimit limit = {0}; // Linux before 5.9, and sandboxes
	getrlimit(RLIMIT_NOFILE, &limit);
	int end = limit.rlim_cur < DESCRIPTORS_MAX ? (int)limit.rlim_cur : DESCRIPTORS_MAX;
	for (int fd = first; fd < end; fd++)
		close(fd);
}
