/* The machine's own figures, and those of wattle itself. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "process/tree.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process of wattle's own beside the recorder: the sender of `run --store`. It is a child of the recorder and no part of the target;
 * what it costs is part of wattle's own cost. In memory that both share: it writes its figures, the recorder reads them. */

struct companion {
	_Atomic int32_t pid, pid_before;  // 0: none. pid_before: of the one that it took over from
	_Atomic bool has_ended;           // the recorder has waited for `pid`
	_Atomic int64_t cpu_ns;           // since the run began, of all that there were
	_Atomic int64_t rss_bytes, max_rss_bytes; // what it does not share with the recorder; 0 unknown
};

static inline bool companion_is(const struct companion *companion, pid_t pid)
{
	return companion != NULL && pid != 0 && (pid == companion->pid || pid == companion->pid_before);
}

/* Figures of the whole machine: /proc/stat and /proc/meminfo, kept open. */

struct machine {
	struct file_kept stat, meminfo;
	struct process_units units;
};

struct machine_reading {     // VALUE_MISSING where it could not be read
	int64_t cpu_busy_ns; // user+nice+system+irq+softirq+steal of all cores; guest time is in user already
	int64_t cpu_idle_ns; // idle+iowait
	int64_t memory_total_bytes;
	int64_t memory_used_bytes; // MemTotal - MemAvailable
};

void machine_open(struct machine *machine, const struct wattle_env *env);
void machine_close(struct machine *machine);
void machine_read(struct machine *machine, struct machine_reading *ret_reading);
void machine_read_cpu(struct machine *machine, struct machine_reading *ret_reading); // the memory is missing

// Pure halves, for tests.
void machine_parse_stat(const char *text, int64_t tick_ns, struct machine_reading *reading);
void machine_parse_meminfo(const char *text, struct machine_reading *reading);

int64_t machine_cores(
	const struct wattle_env *env); // cores online, from /proc/stat; VALUE_MISSING if that can't be read

/* Which pid is whose: /proc shows the pids of the pid namespace in which it was mounted, and that need not be ours
 * (`unshare --pid` without a new /proc, some sandboxes, a container that was given the machine's /proc). There the number
 * that fork, wait and kill use means somebody else. */

bool proc_is_foreign(int procfs_fd);
// The pid by which a foreign /proc knows our process `pid`, a zombie too; 0: it does not, or the kernel can't tell (5.3).
pid_t proc_pid(int procfs_fd, pid_t pid);

/* A second opinion on the target's CPU time: one perf task-clock event on the root, inherited by all that it starts.
 * It needs no privilege for one's own child, and it counts children that nobody waited for. It also counts what rusage
 * leaves out (under load it read 7 % more in a trial), so it is the referee, not the figure. */

// Counts from the next exec of `pid`. Descriptor, or negative errno: seccomp, perf_event_paranoid 3, no perf.
int referee_open(pid_t pid);
int64_t referee_read_ns(int fd); // VALUE_MISSING if it can't be read

/* This process itself. */

// Resident memory, out of the real /proc whatever stands for that; VALUE_MISSING where it can't be read.
int64_t self_rss_bytes(void);
