/* A control group (cgroup v2) below that of this process. The kernel kills all its members at once, however fast they fork. */
#pragma once

struct own_cgroup {
	int fd; // owned: its folder; -1: none
	char path[512];
};

// Sets fd to -1 if there is no cgroup v2 or this process may not create a group.
void own_cgroup_make(struct own_cgroup *ret_cgroup);
// Moves the calling process. A failure is harmless: the keeper also kills by descent.
void own_cgroup_join(const struct own_cgroup *cgroup);
void own_cgroup_kill(const struct own_cgroup *cgroup);
// Removes an empty group. Negative errno: it has members.
int own_cgroup_remove(struct own_cgroup *cgroup);
