/* What cgroup.c (reading), cgroup_find.c (from words to a folder) and cgroup_mounts.c (the hierarchies) share. Nobody
 * else includes this. */
#pragma once

#include "process/cgroup.h"
#include "process/tree.h"

enum { CGROUP_TEXT_SIZE = 16384, CGROUP_MOUNTS_MAX = 24 }; // of cgroup->text

// Looks for an account of CPU time in the folder; true if there is one.
bool cgroup_take_account(struct cgroup *cgroup, int folder_fd);

/* cgroup_mounts.c */
// Version 2 counts CPU time in every cgroup; of version 1 the hierarchy of cpuacct does.
enum { CGROUP_RANK_UNIFIED, CGROUP_RANK_CPUACCT, CGROUP_RANK_OTHER, CGROUP_RANKS };

struct cgroup_mount { // a hierarchy; the kernel has one of version 2 and at most a dozen of version 1
	char point[512];
	char root[512]; // the cgroup that stands there: "/" unless a container was given a part of the tree
	int rank;       // lower is asked first
};

struct cgroup_mounts {
	struct cgroup_mount list[CGROUP_MOUNTS_MAX];
	size_t n;
};

void cgroup_find_mounts(struct cgroup_mounts *mounts, const struct wattle_env *env);
bool cgroup_is_made(const struct wattle_env *env); // WATTLE_SYSFS is set: the tree of cgroups is in there
bool cgroup_has_file(const char *folder, const char *name);

/* What the files of the tree share: tree.c (rounds, life), tree_member.c (the table of members and what is read of
 * one), tree_cpu.c (whose time is whose), tree_discover.c (finding children), tree_cgroup.c (members that a cgroup lists).
 * Nobody else includes this. */

enum { TREE_TEXT_SIZE = 65536 }; // of tree->text

struct tree_candidate { // fallback scan: a process of the machine that is no member yet
	pid_t pid, ppid;
};

/* tree_member.c */
int tree_reserve(struct tree *tree, size_t members); // room in the table; -ENOMEM
void tree_index(struct tree *tree);                  // fills the table anew
struct tree_member *tree_member_add(struct tree *tree, pid_t pid);
int tree_member_add_thread(struct tree *tree, struct tree_member *member, pid_t tid);
// 0 or negative errno; -ESRCH: gone, or the pid is another process by now.
int tree_member_read(const struct tree *tree, struct tree_member *member);
void tree_member_release(struct tree_member *member);
int tree_open_children(const struct tree *tree, pid_t pid, pid_t tid); // descriptor; -1: there is none

/* tree_cpu.c */
void tree_member_end(struct tree *tree, struct tree_member *member, int64_t t_ns);

/* tree_discover.c */
struct tree_member *tree_discover(struct tree *tree, pid_t pid); // as a member, old or new; NULL: no memory, no pid
void tree_discover_children(struct tree *tree, size_t index, int64_t t_ns); // of members[index]; may move the members
void tree_discover_by_scan(struct tree *tree);

/* tree_cgroup.c */
void tree_begin_cgroup(struct tree *tree); // its account starts to count, its first members are taken in
void tree_discover_cgroup(struct tree *tree);
void tree_settle_cgroup(struct tree *tree, int64_t t_ns); // after a round: who moved out ends, the account is read
