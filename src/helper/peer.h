/* Who is at the other end of a connection, as the kernel says it. */
#pragma once

#include "base/env.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PEER_GROUPS_MAX = 65536 + 1 }; // NGROUPS_MAX of Linux, and the one that is not supplementary

struct peer {
	pid_t pid; // 0: of a pid namespace that is not below ours
	uid_t uid;
	int64_t met_ns; // CLOCK_BOOTTIME of when it was asked for
};

// Room for all groups that a process can have; one for all peers, as they are met one by one.
struct peer_groups {
	gid_t gids[PEER_GROUPS_MAX];
	size_t n;
};

int peer_of(int fd, const struct wattle_env *env, struct peer *ret_peer, struct peer_groups *ret_groups);
/* A pidfd of the process that connected, to be closed by the caller. -ESRCH: it is gone, even if a process of its
 * number is there again. */
int peer_pidfd(int fd, const struct peer *peer, const struct wattle_env *env);
// Field 22 of /proc/PID/stat; 0: can't be read.
uint64_t peer_start_ticks(const struct wattle_env *env, pid_t pid);
