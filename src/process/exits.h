/* Exit records of taskstats: the kernel tells of every task that ends, with its name, parent and peak memory. They name
 * the processes that live and die between two samples. CAP_NET_ADMIN in the first user and network namespace is
 * needed; without it those processes are still in the CPU time (rusage), just not counted one by one.
 *
 * The records come from the whole machine. One belongs to the target if its parent does: a member of the tree, or a
 * process that was recognised before; or, when the parent is not known yet, as soon as the parent's own record is. */
#pragma once

#include "process/stat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
