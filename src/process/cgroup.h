/* A cgroup and everything below it as the target: a Slurm job, a pod, a systemd unit.
 *
 * Members are the processes in cgroup.procs of the cgroup and of its sub-cgroups. CPU time is the kernel's own account,
 * which includes every process that ever ran in the cgroup, even short-lived ones: usage_usec of cpu.stat (v2,
 * available without controllers too) or cpuacct.usage (v1). Works with v1, v2 and both side by side.
 *
 * The cgroup tree is found through /proc/self/mountinfo, or is fs/cgroup below WATTLE_SYSFS if that is set. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_cpu { CGROUP_CPU_NONE, CGROUP_CPU_STAT, CGROUP_CPUACCT };

struct cgroup {
	char path[4096];   // cgroup path as in /proc/PID/cgroup
	char folder[4096]; // path of its folder
	int fd;            // owned: descriptor of `folder`
	int cpu_folder_fd; // owned: folder of the CPU account if version 1 has it in another hierarchy; -1: it is in fd
	int events_fd;     // owned: cgroup.events, signalled (EPOLLPRI) when the cgroup fills or empties; -1: none (v1)
	enum cgroup_cpu cpu; // kind of CPU account
	struct file_kept cpu_file;
	bool has_self;  // wattle itself is a member and must be excluded from the target
	pid_t main_pid; // the earliest started process at open
	char *text;     // owned scratch
};

/* `text`: a folder with cgroup.procs (absolute, or relative to the current folder), a path as in /proc/PID/cgroup, or a
 * whole line of that file. -ENOENT: no such cgroup; -ESRCH: no process in it; else another negative errno; with a
 * message. Close *cgroup in every case. */
int cgroup_open(struct cgroup *cgroup, const struct wattle_env *env, const char *text, struct wattle_error *reterr);
void cgroup_close(struct cgroup *cgroup);

// Calls `found` with each process in the cgroup and below it. Returns their number, including processes that are not
// visible in our pid namespace, or negative errno if the cgroup is gone. Does not allocate.
int64_t cgroup_each_process(struct cgroup *cgroup, void (*found)(void *data, pid_t pid), void *data);
// CPU time of all processes that ran in the cgroup, without wattle's own; only differences are meaningful.
// VALUE_MISSING if it can't be read now.
int64_t cgroup_cpu_ns(struct cgroup *cgroup);
const char *cgroup_cpu_method(const struct cgroup *cgroup); // "cgroup cpu.stat", "cgroup cpuacct", "proc"
// False if the kernel reports no process in the cgroup or below it. Afterwards events_fd waits for the next change.
bool cgroup_is_populated(const struct cgroup *cgroup);
// Peak memory since the cgroup was created, including page cache; VALUE_MISSING if the kernel does not report it.
int64_t cgroup_memory_peak_bytes(const struct cgroup *cgroup);
