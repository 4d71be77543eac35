#include "process/machine.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

bool proc_is_foreign(int procfs_fd)
{
	char link[32];
	struct statfs file_system;
	if (fstatfs(procfs_fd, &file_system) < 0 || file_system.f_type != PROC_SUPER_MAGIC)
		return false; // a test tree is taken as it is
	ssize_t n = readlinkat(procfs_fd, "self", link, sizeof(link) - 1);
	int64_t shown;
	link[n > 0 ? n : 0] = '\0';
	return num_parse_i64(link, &shown) == 0 && shown != getpid();
}

// The fdinfo of a pidfd shows the pid in the numbering of the /proc that it is read from.
pid_t proc_pid(int procfs_fd, pid_t pid)
{
	char path[64], text[1024];
	wattle_cleanup_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "self/fdinfo/%d", fd);
	if (file_read_in(procfs_fd, path, text, sizeof(text)) <= 0)
		return 0;
	const char *line = strstr(text, "\nPid:");
	long shown = line != NULL ? strtol(line + 5, NULL, 10) : 0;
	return shown > 0 ? (pid_t)shown : 0;
}
