/* CPU time and memory of the machine, and of wattle itself. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "process/tree.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A helper process of wattle beside the recorder: the uploader of `run --store`. It is a child of the recorder and not
 * part of the target; its cost is part of wattle's own cost. In shared memory: the uploader writes the values, the
 * recorder reads them. */

struct companion {
	_Atomic int32_t pid, pid_before;  // 0: none. pid_before: of its predecessor
	_Atomic bool has_ended;           // the recorder has reaped `pid`
	_Atomic int64_t cpu_ns;           // since the run began, sum over all such processes
	_Atomic int64_t rss_bytes, max_rss_bytes; // memory not shared with the recorder; 0: unknown
};

static inline bool companion_is(const struct companion *companion, pid_t pid)
{
	return companion != NULL && pid != 0 && (pid == companion->pid || pid == companion->pid_before);
}

/* Values of the whole machine from /proc/stat and /proc/meminfo, which are kept open. */

struct machine {
	struct file_kept stat, meminfo;
	struct process_units units;
};

struct machine_reading {     // VALUE_MISSING where it could not be read
	int64_t cpu_busy_ns; // user+nice+system+irq+softirq+steal of all cores; user already includes guest time
	int64_t cpu_idle_ns; // idle+iowait
	int64_t memory_total_bytes;
	int64_t memory_used_bytes; // MemTotal - MemAvailable
};

void machine_open(struct machine *machine, const struct wattle_env *env);
void machine_close(struct machine *machine);
void machine_read(struct machine *machine, struct machine_reading *ret_reading);

// Parsers without I/O, for tests.
void machine_parse_stat(const char *text, int64_t tick_ns, struct machine_reading *reading);
void machine_parse_meminfo(const char *text, struct machine_reading *reading);

int64_t machine_cores(
	const struct wattle_env *env); // cores online, from /proc/stat; VALUE_MISSING if that can't be read

/* Translation of pids: /proc shows the pids of the pid namespace in which it was mounted, which may not be ours
 * (`unshare --pid` without a new /proc, some sandboxes, a container with the machine's /proc). There, the pid that
 * fork, wait and kill use belongs to another process. */

bool proc_is_foreign(int procfs_fd);
// The pid of our process `pid` (may be a zombie) in a foreign /proc; 0: not visible, or not supported by the kernel
// (5.3).
pid_t proc_pid(int procfs_fd, pid_t pid);

/* Cross-check of the target's CPU time: one perf task-clock event on the root process, inherited by all its
 * descendants. It needs no privilege for one's own child, and includes children that were never waited for. It also
 * counts time that rusage leaves out (under load it read 7 % more in a trial), so it only checks the reported value. */

// Counts from the next exec of `pid`. Returns a descriptor, or negative errno: seccomp, perf_event_paranoid 3, no perf.
int referee_open(pid_t pid);
int64_t referee_read_ns(int fd); // VALUE_MISSING if it can't be read

/* This process. */

// Resident memory, always from the real /proc; VALUE_MISSING if it can't be read.
int64_t self_rss_bytes(void);
