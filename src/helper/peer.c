#include "helper/policy.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5; not in the headers of Debian 12
#endif

int peer_of(int fd, const struct wattle_env *env, struct peer *ret_peer, struct peer_groups *ret_groups)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return -errno;
	*ret_peer = (struct peer){credentials.pid, credentials.uid, env_boottime_ns(env)};
	// The supplementary groups: most users are in a group by /etc/group, not by their primary gid.
	size = (PEER_GROUPS_MAX - 1) * sizeof(gid_t);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret_groups->gids, &size) < 0)
		size = 0; // Linux before 4.13: only the primary group
	ret_groups->n = size / sizeof(gid_t);
	ret_groups->gids[ret_groups->n++] = credentials.gid;
	return 0;
}

uint64_t peer_start_ticks(const struct wattle_env *env, pid_t pid)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	if (file_read_in(env->procfs_fd, path, text, sizeof(text)) <= 0)
		return 0;
	// The name, field 2, may contain blanks and brackets; the last bracket ends it.
	char *at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at == NULL)
		return 0;
	at[1 + strcspn(at + 1, " \n")] = '\0';
	uint64_t ticks;
	return num_parse_u64(at + 1, &ticks) == 0 ? ticks : 0;
}

static bool is_alive(int pidfd)
{
	struct pollfd ends = {.fd = pidfd, .events = POLLIN};
	return poll(&ends, 1, 0) == 0;
}

/* For kernels without SO_PEERPIDFD. The pid may have been reused: reject a process that started after the peer
 * connected, or that belongs to another user. */
static int pidfd_by_number(const struct peer *peer, const struct wattle_env *env)
{
	wattle_cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	if (pidfd < 0)
		return -errno;
	int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	uint64_t start_ticks = peer_start_ticks(env, peer->pid);
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "%d", (int)peer->pid);
	if (start_ticks == 0 || (int64_t)start_ticks > peer->met_ns / tick_ns)
		return -ESRCH;
	if (env->procfs_fd < 0 || fstatat(env->procfs_fd, path, &st, 0) < 0 || st.st_uid != peer->uid)
		return -ESRCH;
	return take_fd(&pidfd);
}

int peer_pidfd(int fd, const struct peer *peer, const struct wattle_env *env)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);
	if (peer->pid <= 0)
		return -ESRCH;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0)
		pidfd = errno == ENOPROTOOPT ? pidfd_by_number(peer, env) : -errno;
	if (pidfd >= 0 && !is_alive(pidfd)) {
		close(pidfd);
		return -ESRCH;
	}
	return pidfd;
}
