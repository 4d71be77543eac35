/* Which pid is whose: /proc shows the pids of the pid namespace in which it was mounted, and that need not be ours
 * (`unshare --pid` without a new /proc, some sandboxes, a container that was given the machine's /proc). There the number
 * that fork, wait and kill use means somebody else. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

bool proc_is_foreign(int procfs_fd);
// The pid by which a foreign /proc knows our process `pid`, a zombie too; 0: it does not, or the kernel can't tell (5.3).
pid_t proc_pid(int procfs_fd, pid_t pid);
