/* Shared by cgroup.c (reading), cgroup_find.c (from the user's text to a folder) and cgroup_mounts.c (hierarchies).
 * Private to these files. */
#pragma once

#include "process/cgroup.h"
#include "process/tree.h"

enum { CGROUP_TEXT_SIZE = 16384, CGROUP_MOUNTS_MAX = 24 }; // size of cgroup->text

// Looks for a CPU account in the folder; true if there is one.
bool cgroup_take_account(struct cgroup *cgroup, int folder_fd);

/* cgroup_mounts.c */
// Version 2 has CPU time in every cgroup; version 1 only in the cpuacct hierarchy.
enum { CGROUP_RANK_UNIFIED, CGROUP_RANK_CPUACCT, CGROUP_RANK_OTHER, CGROUP_RANKS };

struct cgroup_mount { // a hierarchy; the kernel has one of version 2 and at most a dozen of version 1
	char point[512];
	char root[512]; // cgroup mounted there: "/" unless a container has only a part of the tree
	int rank;       // lower ranks are tried first
};

struct cgroup_mounts {
	struct cgroup_mount list[CGROUP_MOUNTS_MAX];
	size_t n;
};

void cgroup_find_mounts(struct cgroup_mounts *mounts, const struct wattle_env *env);
bool cgroup_is_made(const struct wattle_env *env); // WATTLE_SYSFS is set and contains the cgroup tree
bool cgroup_has_file(const char *folder, const char *name);

/* Shared by the files of the process tree: tree.c (rounds, open and close), tree_member.c (table of members, reading
 * one process), tree_cpu.c (CPU time accounting), tree_discover.c (finding children) and tree_cgroup.c (members listed
 * by a cgroup). Private to these files. */

enum { TREE_TEXT_SIZE = 65536 }; // size of tree->text

struct tree_candidate { // for the fallback scan: a process that is not a member yet
	pid_t pid, ppid;
};

/* tree_member.c */
int tree_reserve(struct tree *tree, size_t members); // reserves room in the table; -ENOMEM
void tree_index(struct tree *tree);                  // rebuilds the table
struct tree_member *tree_member_add(struct tree *tree, pid_t pid);
int tree_member_add_thread(struct tree *tree, struct tree_member *member, pid_t tid);
// 0 or negative errno; -ESRCH: the process is gone, or its pid was reused.
int tree_member_read(const struct tree *tree, struct tree_member *member);
void tree_member_release(struct tree_member *member);
int tree_open_children(const struct tree *tree, pid_t pid, pid_t tid); // returns a descriptor; -1: none

/* tree_cpu.c */
void tree_member_end(struct tree *tree, struct tree_member *member, int64_t t_ns);

/* tree_discover.c */
struct tree_member *tree_discover(struct tree *tree, pid_t pid); // existing or new member; NULL: out of memory, or the
                                                                 // pid is not valid
void tree_discover_children(struct tree *tree, size_t index, int64_t t_ns); // finds the children of members[index]; may
                                                                            // move the members
void tree_discover_by_scan(struct tree *tree);

/* tree_cgroup.c */
void tree_begin_cgroup(struct tree *tree); // starts the CPU account and adds the first members
void tree_discover_cgroup(struct tree *tree);
void tree_finish_cgroup(struct tree *tree,
	int64_t t_ns); // after a round: ends members that left, and reads the account
