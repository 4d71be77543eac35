/* The target: its processes from sample to sample, and the values read for each. */
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
	char name[PROCESS_NAME_SIZE]; // comm, cut at 15 bytes by the kernel (longer for kernel threads)
	pid_t ppid;
	int64_t own_ns;                     // utime + stime of all threads, including ended ones
	int64_t children_ns;                // cutime + cstime: children that were waited for, recursively
	int64_t minor_faults, major_faults; // of the process itself
	int64_t children_minor_faults, children_major_faults; // of waited-for children
	int64_t threads;
	uint64_t start_ticks; // since boot; pid and start_ticks together identify a process
	int64_t rss_bytes;
	int64_t file_bytes; // part of rss_bytes in file and shared memory pages: from statm, 0 if that is not read
};

/* Clock tick and page size of this machine. */
struct process_units {
	int64_t tick_ns;
	int64_t page_bytes;
};
struct process_units process_units_get(void);

/* Start address of the program's stack. A fork keeps it, an exec changes it (address space randomisation). 0: unknown. */
uint64_t process_stat_start_stack(const char *text, size_t size);

// 0 or -EINVAL. The name may contain blanks, parentheses and newlines.
int process_stat_parse(const char *text, size_t size, const struct process_units *units, struct process_stat *ret_stat);

/* I/O and context switches of a living process, including reaped children where the kernel adds them. */

struct process_io {
	int64_t read_bytes, written_bytes;                // storage: read_bytes and write_bytes of /proc/PID/io
	int64_t voluntary_switches, involuntary_switches; // all living threads, without children
};

// 0 or negative errno (another user's process: -EACCES).
int process_io_read(int procfs_fd, pid_t pid, struct process_io *ret_io);

/* The target: a root process and all its descendants, followed from sample to sample.
 *
 * New members are found through the `children` files of the known members (each thread has one, kept open), or, if the
 * kernel has none, by scanning /proc for parent pids. Membership is permanent: a process that was orphaned, called
 * setsid or daemonised stays a member. An open /proc/PID/stat refers to one process only (it gives ESRCH once that is
 * gone), so a reused pid is not confused with it; if the file could not be kept open, the start time is compared.
 *
 * A cgroup is followed in the same way, but its members are those that it lists, and its own account gives the CPU
 * time.
 *
 * CPU time is complete, not sampled: the members' own time, plus the time of their waited-for children (cutime), plus
 * what the recorder reaped itself (rusage). See tree_cpu. */

struct tree_thread {
	pid_t tid;
	int children_fd; // owned
	uint32_t seen;   // last round in which the task folder listed it
};

/* Private memory of a process since its last reading (memory.h). */
struct tree_member_memory {
	bool is_known;   // used by the estimate
	bool is_read;    // the values below come from a reading; else only inherited_bytes is valid
	bool has_forked; // forked from another member without an exec since: it shares its parent's pages until it writes to them
	bool is_stale;   // has forked since the reading: formerly private pages may be shared now
	bool is_denied;  // the page map can't be read, or reading costs too much: not retried until an exec
	int64_t private_bytes, anonymous_bytes, file_bytes, minor_faults; // values at the reading
	int64_t inherited_bytes;      // anonymous memory of its parent when the process was found
	char name[PROCESS_NAME_SIZE]; // name when has_forked was last determined: an exec changes it
};

struct tree_member {
	pid_t pid;
	bool is_main;
	bool is_reaper; // the recorder itself: its children belong to the target, its own values do not
	bool alive;
	bool readable;            // the last reading of its stat file succeeded
	bool sampled;             // read by at least one sample
	int stat_fd;              // owned; -1: too many open files, so it is opened for each reading
	int statm_fd;             // owned; -1: as above
	struct process_stat stat; // last good reading
	int64_t end_ns;           // VALUE_MISSING while alive
	uint32_t listed_round;    // cgroup: last round that listed it
	int64_t max_rss_bytes;
	struct tree_member_memory memory;

	/* CPU time before the recorder started (attach): subtracted from the counters. */
	int64_t base_own_ns, base_children_ns;
	int64_t base_major_faults, base_minor_faults;
	struct process_io base_io;
	/* Last seen time of its children that have ended. It moves to stat.children_ns when the process waits for them.
	 * Time that is never waited for (SIGCHLD ignored) is counted from here. */
	int64_t gone_children_ns;

	struct tree_thread *threads; // owned; n_threads entries, the main thread first
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
	int64_t suspended_ns;        // start times count from boot including suspend; CLOCK_MONOTONIC excludes suspend
	struct tree_member *members; // owned; living ones first, in order of discovery
	size_t n_members, capacity;
	int32_t *table; // owned: hash table, pid -> index of the living member, -1: empty
	size_t table_size;
	pid_t *pids; // owned: pids of living members, ascending, without the reaper
	size_t n_pids, pids_capacity;
	struct tree_candidate *candidates; // owned scratch for the fallback scan
	size_t n_candidates, candidates_capacity;
	char *text; // owned scratch
	uint32_t round;
	bool changed; // members were added or removed since `pids` was built
	bool has_children_files;
	bool attached;
	bool is_foreign; // /proc shows other pids than fork and wait return (see machine.h). Pids here are those of /proc
	struct cgroup *cgroup;  // borrowed; NULL: the target is a process and its descendants
	int64_t cgroup_base_ns; // the cgroup's CPU account when the recorder started
	int64_t cgroup_cpu_ns;  // CPU time in it since; VALUE_MISSING: no account, the members' own times are summed
	int64_t listed;         // processes in it at the last round; 0: empty or gone
	int64_t round_t_ns;     // time of the last round
	pid_t main_pid;
	/* attach: pid of the recorder, 0 if this /proc does not show it. A program that spawned its own recorder may
	 * have become its parent (as a subreaper, or as PID 1 of a container); the recorder is still not part of the
	 * target. */
	pid_t own_pid;

	int64_t reaped_ns;   // user and system time of processes reaped by the recorder, including their children
	int64_t orphan_ns;   // attach: last seen time of members that ended with no living ancestor in the target
	int64_t main_own_ns; // own time of the root process, kept after its end
	int64_t last_main_ns, last_descendants_ns; // minimum for the next result: a sum over many files can decrease,
	                                           // the reported value must not
	struct rusage reaped;      // other values of reaped processes, summed; ru_maxrss: the maximum
	int64_t n_seen, n_sampled; // processes found so far; of those, read by at least one sample
	const struct exits *exits; // borrowed; NULL: no exit records, so unseen reaped processes are counted here
};

struct tree_totals { // result of one sample
	int64_t main_cpu_ns, descendants_cpu_ns;
	int64_t main_rss_bytes, descendants_rss_bytes;
	int64_t main_threads, descendants_threads;
	int64_t processes; // number of living processes
};

// Follows `main_pid`. reaper_pid: the recorder's own pid if it is the parent and subreaper of the target; 0 to attach,
// which fails with -ENOENT or -ESRCH if the process does not exist. -ENOMEM.
int tree_open(struct tree *tree, const struct wattle_env *env, pid_t main_pid, pid_t reaper_pid);
/* Attach: also follows these processes and their descendants; existing members are unchanged. -ENOENT or -ESRCH if a
 * process does not exist, -ENOMEM. */
int tree_follow_too(struct tree *tree, const pid_t *pids, size_t n);
/* Follows the processes of a cgroup instead: the target is every process listed in it, whatever its parent. The main
 * process is the earliest started one present now. -ENOMEM. */
int tree_open_cgroup(struct tree *tree, const struct wattle_env *env, struct cgroup *cgroup);
void tree_close(struct tree *tree);

// Performs one round: finds new members, reads all, detects ended ones. Sums may be VALUE_MISSING if no process is
// alive.
void tree_update(struct tree *tree, int64_t t_ns, struct tree_totals *ret_totals);

// Reads the cgroup's account now. A container's cgroup is removed milliseconds after its last process ends.
void tree_read_account(struct tree *tree);
bool tree_is_companion(const struct tree *tree, pid_t pid); // whether the process is env->companion; pid as in this
// /proc The pid in this /proc of a process known from fork or wait; valid until it is reaped.
pid_t tree_pid(const struct tree *tree, pid_t pid);
// Call when the recorder has reaped `pid` (from tree_pid): usage, including its children's, is final. `last`: its stat
// line as a zombie, NULL if it could not be read.
void tree_reaped(struct tree *tree, pid_t pid, const struct rusage *usage, const struct process_stat *last,
	int64_t t_ns);

/* Attach: call when the parent of the root has reaped it and sent its usage. Adds the time of the root and of the
 * children it waited for since their last reading, if any. */
void tree_main_waited(struct tree *tree, const struct rusage *usage, int64_t t_ns);

// CPU time of the root and of all others so far, as exact as the kernel's accounting.
void tree_cpu(const struct tree *tree, int64_t *ret_main_ns, int64_t *ret_descendants_ns);

struct tree_member *tree_find(struct tree *tree, pid_t pid); // a living member or NULL
// Removes members that ended since the last call from tree->members; process them first.
void tree_forget_ended(struct tree *tree);
int64_t tree_start_ns(const struct tree *tree, const struct tree_member *member);

void tree_member_read_rss(const struct tree *tree, struct tree_member *member); // reads rss_bytes and file_bytes now
// Whether the child still runs its parent's program in a copy of its memory: an exec moves the stack.
bool tree_member_has_forked(const struct tree *tree, const struct tree_member *child, const struct tree_member *parent);
// True if it is alive, not a zombie, not the recorder, and was read in the last round.
bool tree_member_has_memory(const struct tree_member *member);
int tree_read_stat(const struct tree *tree, pid_t pid, struct process_stat *ret_stat);

/* Exit records of taskstats: the kernel reports every task that ends, with its name, parent and peak memory. This
 * identifies processes that start and end between two samples. Requires CAP_NET_ADMIN in the initial user and network
 * namespace; without it those processes are still in the CPU time (rusage), but not counted individually.
 *
 * The records cover the whole machine. A record belongs to the target if its parent does: a member of the tree or a
 * process recognised before. If the parent is not known yet, the record waits for the parent's own record. */

struct tree;

enum { EXITS_RECENT = 1024, EXITS_PENDING = 512 };

struct exit_record {
	pid_t pid, ppid;
	int64_t start_ns, end_ns; // CLOCK_MONOTONIC, to the accuracy of the record's microseconds
	int64_t cpu_ns;           // VALUE_MISSING if the kernel's tick accounting recorded none
	int64_t max_rss_bytes;
	char command[PROCESS_NAME_SIZE];
};

struct exits {
	int fd;           // -1: not available
	int64_t n_unseen; // processes of the target that are in no sample
	int64_t main_peak_bytes;
	pid_t recent[EXITS_RECENT]; // unseen processes of the target, each at its pid modulo EXITS_RECENT; a later one replaces it
	struct exit_record pending[EXITS_PENDING]; // records whose parent is not known yet; the oldest is replaced first
	size_t n_pending;
	void (*found)(void *data, const struct exit_record *record); // called for each unseen process
	void *data;
};

// Starts listening. After a failure *exits is usable too, and stays empty.
void exits_open(struct exits *exits, struct tree *tree, void (*found)(void *, const struct exit_record *), void *data);
void exits_close(struct exits *exits);
// Reads all pending records. Does not allocate.
void exits_read(struct exits *exits, struct tree *tree, int64_t t_ns);
bool exits_has_pid(const struct exits *exits, pid_t pid);
// Processes one record without I/O, for tests.
void exits_add(struct exits *exits, struct tree *tree, const struct exit_record *record);
