/* The target: its processes from sample to sample, and what is read of each. */
#pragma once

#include "base/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* One line of /proc/PID/stat. */

enum { PROCESS_NAME_SIZE = 32 };

struct process_stat {
	char state;
	char name[PROCESS_NAME_SIZE]; // comm; the kernel cuts it at 15 bytes (kernel threads at more)
	pid_t ppid;
	int64_t own_ns;                     // utime + stime: all threads, those that have ended too
	int64_t children_ns;                // cutime + cstime: children that were waited for, recursively
	int64_t minor_faults, major_faults; // own
	int64_t children_minor_faults, children_major_faults; // of waited-for children
	int64_t threads;
	uint64_t start_ticks; // since boot; with the pid this is the identity of a process
	int64_t rss_bytes;
	int64_t file_bytes; // of it, pages of files and of shared memory: from statm, 0 where that is not read
};

/* Clock ticks and page size of this machine; both are constants of the kernel's interface. */
struct process_units {
	int64_t tick_ns;
	int64_t page_bytes;
};
struct process_units process_units_get(void);

/* Address at which the stack of the program starts. A fork keeps it and an exec chooses another one (address space
 * randomisation). 0: unknown. */
uint64_t process_stat_start_stack(const char *text, size_t size);

// 0 or -EINVAL. The name may hold blanks, parentheses and newlines.
int process_stat_parse(const char *text, size_t size, const struct process_units *units, struct process_stat *ret_stat);

/* What a living process has read, written and waited for, its reaped children included where the kernel adds them. */

struct process_io {
	int64_t read_bytes, written_bytes;                // storage: read_bytes and write_bytes of /proc/PID/io
	int64_t voluntary_switches, involuntary_switches; // all living threads, without children
};

// 0 or negative errno (another user's process: -EACCES).
int process_io_read(int procfs_fd, pid_t pid, struct process_io *ret_io);

/* The target: a root process and all its descendants, followed from sample to sample.
 *
 * Members are found through the `children` files of the members already known (each thread has one, kept open), or,
 * where the kernel has none, by scanning /proc for parent pids. Once a member, always a member: a process that was
 * orphaned, called setsid or daemonised stays one. An open /proc/PID/stat belongs to one process for ever (it gives
 * ESRCH when that one is gone), so a reused pid can't be taken for it; where it could not be kept open the start time
 * is compared.
 *
 * A cgroup is followed in the same way, but its members are those that it lists, and its own account is the CPU time.
 *
 * CPU time is complete, not sampled: the members' own time, plus what their waited-for children left with them
 * (cutime), plus what the recorder reaped itself (rusage). See tree_cpu. */

struct tree_thread {
	pid_t tid;
	int children_fd; // owned
	uint32_t seen;   // round in which the task folder listed it
};

/* Private memory of a process since its last reading (memory.h). */
struct tree_member_memory {
	bool is_known;   // to the estimate
	bool is_read;    // the figures below are of a reading; else only inherited_bytes holds
	bool has_forked; // from another member, and no exec since: its pages are its parent's until it writes to them
	bool is_stale;   // it has forked since it was read: what was private is shared now
	bool is_denied;  // its page map can't be read, or is too dear: not tried again until an exec
	int64_t private_bytes, anonymous_bytes, file_bytes, minor_faults; // at the reading
	int64_t inherited_bytes;      // anonymous memory of its parent when it was first met
	char name[PROCESS_NAME_SIZE]; // when has_forked was last found out: an exec changes it
};

struct tree_member {
	pid_t pid;
	bool is_main;
	bool is_reaper; // the recorder itself: its children belong to the target, its own figures do not
	bool alive;
	bool readable;            // the last reading of its stat file succeeded
	bool sampled;             // some sample has read it
	int stat_fd;              // owned; -1: too many open files, opened at each reading
	int statm_fd;             // owned; -1 likewise
	struct process_stat stat; // last good reading
	int64_t end_ns;           // VALUE_MISSING while alive
	uint32_t listed_round;    // cgroup: when it was listed last
	int64_t max_rss_bytes;
	struct tree_member_memory memory;

	/* What this process used before the recorder came (attach): subtracted from its counters. */
	int64_t base_own_ns, base_children_ns;
	int64_t base_major_faults, base_minor_faults;
	struct process_io base_io;
	/* Time last seen with children of its own that are gone by now. It shows up in stat.children_ns as soon as the
	 * process waits for them; what does not was left to nobody (SIGCHLD ignored), and is counted from here. */
	int64_t gone_children_ns;

	struct tree_thread *threads; // owned; n_threads of them, the main thread first
	size_t n_threads, threads_capacity;
	int64_t listed_threads; // stat.threads when the task folder was last listed
	int64_t listed_t_ns;
};

struct cgroup;
struct exits;

struct tree {
	const struct wattle_env *env; // borrowed
	int procfs_fd;                // owned: the real /proc, or WATTLE_PROCFS
	struct process_units units;
	int64_t suspended_ns;        // start times count from boot, sleep included; CLOCK_MONOTONIC does not
	struct tree_member *members; // owned; living ones first, in order of discovery
	size_t n_members, capacity;
	int32_t *table; // owned: open-addressed pid -> index of the living member, -1 empty
	size_t table_size;
	pid_t *pids; // owned: living members ascending, without the reaper
	size_t n_pids, pids_capacity;
	struct tree_candidate *candidates; // owned scratch of the fallback scan
	size_t n_candidates, candidates_capacity;
	char *text; // owned scratch
	uint32_t round;
	bool changed; // members came or went since pids was made
	bool has_children_files;
	bool attached;
	bool is_foreign; // /proc shows other pids than fork and wait tell: see machine.h. Here are those of /proc
	struct cgroup *cgroup;  // borrowed; NULL: the target is a process and its descendants
	int64_t cgroup_base_ns; // its account when the recorder came
	int64_t cgroup_cpu_ns;  // what ran in it since; VALUE_MISSING: no account, the members' own times are summed
	int64_t listed;         // processes in it at the last round; 0: it is empty or gone
	int64_t round_t_ns;     // when the last round was
	pid_t main_pid;
	/* attach: the recorder itself, 0 if this /proc does not show it. A program that spawned its own recorder may have
	 * become its parent (as a subreaper, or as PID 1 of a container): it is no part of the target all the same. */
	pid_t own_pid;

	int64_t reaped_ns;   // user and system time of what the recorder waited for, their children's included
	int64_t orphan_ns;   // attach: last seen time of members that ended with no living ancestor in the target
	int64_t main_own_ns; // own time of the root, kept after its end
	int64_t last_main_ns, last_descendants_ns; // a sum over many files can dip; what is shown does not
	struct rusage reaped;      // the other figures of what the recorder waited for, summed; ru_maxrss: the largest
	int64_t n_seen, n_sampled; // processes ever met; of those, read by at least one sample
	const struct exits *exits; // borrowed; NULL: no exit records, so that what is reaped unseen is counted here
};

struct tree_totals { // one sample
	int64_t main_cpu_ns, descendants_cpu_ns;
	int64_t main_rss_bytes, descendants_rss_bytes;
	int64_t main_threads, descendants_threads;
	int64_t processes; // alive
};

// Follow `main_pid`. reaper_pid: the recorder's own pid when it is the parent and subreaper of the target; 0 to
// attach, which fails with -ENOENT or -ESRCH if there is no such process. -ENOMEM.
int tree_open(struct tree *tree, const struct wattle_env *env, pid_t main_pid, pid_t reaper_pid);
/* attach: follow these and their descendants as well; those that are members already stay what they are. -ENOENT or -ESRCH
 * if there is no such process, -ENOMEM. */
int tree_follow_too(struct tree *tree, const pid_t *pids, size_t n);
/* Follow the processes in a cgroup instead: those listed in it are the target, wherever they come from. main is the one
 * that started first of those that are there now. -ENOMEM. */
int tree_open_cgroup(struct tree *tree, const struct wattle_env *env, struct cgroup *cgroup);
void tree_close(struct tree *tree);

// One round: finds new members, reads all, notices the dead. Sums may be VALUE_MISSING when nothing is alive.
void tree_update(struct tree *tree, int64_t t_ns, struct tree_totals *ret_totals);

// Takes over the cgroup's account as it is now. A container's cgroup is removed milliseconds after its last process.
void tree_read_account(struct tree *tree);
bool tree_is_companion(const struct tree *tree, pid_t pid); // of env->companion; pid as this /proc has it
// What this /proc calls the process that fork or wait has told of; while it is not waited for.
pid_t tree_pid(const struct tree *tree, pid_t pid);
// The recorder has waited for `pid` (of tree_pid): usage, its children's included, is final. `last` is its stat line as a zombie,
// NULL if that could not be read.
void tree_reaped(struct tree *tree, pid_t pid, const struct rusage *usage, const struct process_stat *last,
	int64_t t_ns);

/* attach: its parent has waited for the root, and has told of it. What it and those that it waited for have used since they were
 * read last, or without ever being read, is counted from here. */
void tree_main_waited(struct tree *tree, const struct rusage *usage, int64_t t_ns);

// CPU time of the root and of all others so far, exact up to the kernel's own accounting.
void tree_cpu(const struct tree *tree, int64_t *ret_main_ns, int64_t *ret_descendants_ns);

struct tree_member *tree_find(struct tree *tree, pid_t pid); // a living member or NULL
// tree->members holds the living and those that ended since this was called last: hand those on first.
void tree_forget_ended(struct tree *tree);
int64_t tree_start_ns(const struct tree *tree, const struct tree_member *member);

void tree_member_read_rss(const struct tree *tree, struct tree_member *member); // rss_bytes and file_bytes, now
// Whether the child runs the program that its parent runs, in a copy of its memory: an exec gives it a stack elsewhere.
bool tree_member_has_forked(const struct tree *tree, const struct tree_member *child, const struct tree_member *parent);
// It lives, is no zombie, is not the recorder, and was read at the last round.
bool tree_member_has_memory(const struct tree_member *member);
int tree_read_stat(const struct tree *tree, pid_t pid, struct process_stat *ret_stat);

/* Exit records of taskstats: the kernel tells of every task that ends, with its name, parent and peak memory. They name
 * the processes that live and die between two samples. CAP_NET_ADMIN in the first user and network namespace is
 * needed; without it those processes are still in the CPU time (rusage), just not counted one by one.
 *
 * The records come from the whole machine. One belongs to the target if its parent does: a member of the tree, or a
 * process that was recognised before; or, when the parent is not known yet, as soon as the parent's own record is. */

struct tree;

enum { EXITS_RECENT = 1024, EXITS_PENDING = 512 };

struct exit_record {
	pid_t pid, ppid;
	int64_t start_ns, end_ns; // CLOCK_MONOTONIC, to the accuracy of the record's microseconds
	int64_t cpu_ns;           // VALUE_MISSING where the kernel's tick saw nothing of it
	int64_t max_rss_bytes;
	char command[PROCESS_NAME_SIZE];
};

struct exits {
	int fd;           // -1: not to be had
	int64_t n_unseen; // of the target, in no sample
	int64_t main_peak_bytes;
	pid_t recent[EXITS_RECENT]; // unseen members of the target, the last ones
	size_t n_recent;
	struct exit_record pending[EXITS_PENDING]; // parent not known yet; the oldest gives way
	size_t n_pending;
	void (*found)(void *data, const struct exit_record *record); // called for each unseen member
	void *data;
};

// Listens from now on; *exits is usable (as empty) also when that fails.
void exits_open(struct exits *exits, struct tree *tree, void (*found)(void *, const struct exit_record *), void *data);
void exits_close(struct exits *exits);
// Takes in what has arrived. No allocation.
void exits_read(struct exits *exits, struct tree *tree, int64_t t_ns);
bool exits_has_pid(const struct exits *exits, pid_t pid);
// Pure half: one record, for tests.
void exits_add(struct exits *exits, struct tree *tree, const struct exit_record *record);
