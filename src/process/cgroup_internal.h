/* What cgroup.c (reading), cgroup_find.c (from words to a folder) and cgroup_mounts.c (the hierarchies) share. Nobody
 * else includes this. */
#pragma once

#include "process/cgroup.h"

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
