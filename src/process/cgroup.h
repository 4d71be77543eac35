/* A cgroup and all below it as the target: a Slurm job, a pod, a systemd unit.
 *
 * Members are the processes in cgroup.procs of the cgroup and of its sub-cgroups. CPU time is the kernel's own account,
 * which has every process that ever ran in it, however short its life: usage_usec of cpu.stat (v2, there without
 * controllers too) or cpuacct.usage (v1). Works with v1, v2 and both side by side.
 *
 * The tree of cgroups is found through /proc/self/mountinfo; where WATTLE_SYSFS is set it is fs/cgroup of that folder. */
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
	char path[4096];   // as /proc/PID/cgroup shows it
	char folder[4096]; // where it lies
	int fd;            // owned: that folder
	int cpu_folder_fd; // owned: where the CPU account is, if version 1 has it in another hierarchy; -1: it is in fd
	int events_fd;     // owned: cgroup.events, ready (EPOLLPRI) when the cgroup fills or empties; -1: none (v1)
	enum cgroup_cpu cpu; // which account there is
	struct file_kept cpu_file;
	bool has_self;  // wattle itself is a member: it is no part of the target
	pid_t main_pid; // the process that started first of those that were there
	char *text;     // owned scratch
};

/* `text`: a folder (absolute, or relative to the current one) with cgroup.procs, a path as /proc/PID/cgroup shows it, or
 * a whole line of that file. -ENOENT: no such cgroup; -ESRCH: no process in it; else negative errno; with a sentence.
 * *cgroup is to be closed in every case. */
int cgroup_open(struct cgroup *cgroup, const struct wattle_env *env, const char *text, struct wattle_error *reterr);
void cgroup_close(struct cgroup *cgroup);

// Calls `found` with each process in the cgroup and below it. Number of them, those that our pid namespace does not show
// included, or negative errno when the cgroup is gone. No allocation.
int64_t cgroup_each_process(struct cgroup *cgroup, void (*found)(void *data, pid_t pid), void *data);
// CPU time of all that ran in it, only its growth means something; wattle's own is left out. VALUE_MISSING if that can't be read now.
int64_t cgroup_cpu_ns(struct cgroup *cgroup);
const char *cgroup_cpu_method(const struct cgroup *cgroup); // "cgroup cpu.stat", "cgroup cpuacct", "proc"
// False if the kernel says that there is no process in it or below it. events_fd waits for the next change afterwards.
bool cgroup_is_populated(const struct cgroup *cgroup);
// Largest memory since the cgroup was made, page cache included; VALUE_MISSING where the kernel does not keep it.
int64_t cgroup_memory_peak_bytes(const struct cgroup *cgroup);
