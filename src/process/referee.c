#include "process/machine.h"

#include "base/util.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int referee_open(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		// perf_event_paranoid 2 requires this; the task clock includes time in the kernel nevertheless.
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int64_t referee_read_ns(int fd)
{
	uint64_t ns;
	if (fd < 0 || read(fd, &ns, sizeof(ns)) != (ssize_t)sizeof(ns))
		return VALUE_MISSING;
	return (int64_t)ns;
}
