/* Identity of the peer, on this kernel and, with a filter that hides SO_PEERPIDFD, as on older ones. */
#include "helper/policy.h"

#include "rows.h"

#include "base/util.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct peer_groups groups;

static void meet(int ret_pair[2], struct wattle_env *ret_env, struct peer *ret_peer)
{
	const struct env_options options = {.nvml = "/nonexistent", .state_dir = "/nonexistent"};
	assert_int_equal(env_open_with(ret_env, &options, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_pair), 0);
	assert_int_equal(peer_of(ret_pair[0], ret_env, ret_peer, &groups), 0);
}

static void part(int pair[2], struct wattle_env *env)
{
	close(pair[0]);
	close(pair[1]);
	env_close(env);
}

static void itself(void **state)
{
	struct wattle_env env;
	struct peer peer;
	int pair[2];
	gid_t mine[1024];
	meet(pair, &env, &peer);
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.uid, geteuid());
	int n = getgroups(ARRAY_SIZE(mine), mine);
	assert_true(n >= 0);
	assert_int_equal(groups.n, n + 1);
	assert_int_equal(groups.gids[n], getegid());
	assert_memory_equal(groups.gids, mine, (size_t)n * sizeof(gid_t));
	assert_true(peer_start_ticks(&env, getpid()) > 0);
	assert_int_equal(peer_start_ticks(&env, 0), 0);
	part(pair, &env);
}

static void alive(void **state)
{
	struct wattle_env env;
	struct peer peer;
	int pair[2];
	meet(pair, &env, &peer);
	int pidfd = peer_pidfd(pair[0], &peer, &env);
	assert_true(pidfd >= 0);
	close(pidfd);
	peer.pid = 0; // in a PID namespace that is not visible here
	assert_int_equal(peer_pidfd(pair[0], &peer, &env), -ESRCH);
	part(pair, &env);
}

static int hide_peer_pidfd(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(getsockopt), 1,
		SCMP_A2(SCMP_CMP_EQ, 77));
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

// From here on the kernel behaves like an old one.
static void old_kernel(void **state)
{
	struct wattle_env env;
	struct peer peer;
	int pair[2];
	if (hide_peer_pidfd() < 0)
		SKIP_BECAUSE("no filter may be loaded here");
	meet(pair, &env, &peer);
	int pidfd = peer_pidfd(pair[0], &peer, &env);
	assert_true(pidfd >= 0);
	close(pidfd);
	struct peer before = peer;
	before.met_ns = 0; // seen before the process with that pid began: now it is another process
	assert_int_equal(peer_pidfd(pair[0], &before, &env), -ESRCH);
	struct peer other = peer;
	other.uid++; // process of another user
	assert_int_equal(peer_pidfd(pair[0], &other, &env), -ESRCH);
	struct peer dead = peer;
	dead.pid = fork();
	if (dead.pid == 0)
		_exit(0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)dead.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(peer_pidfd(pair[0], &dead, &env), -ESRCH); // a zombie
	assert_int_equal(waitpid(dead.pid, NULL, 0), dead.pid);
	assert_int_equal(peer_pidfd(pair[0], &dead, &env), -ESRCH);
	part(pair, &env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "peer: pid, user, all groups, start time", itself);
	ROWS_ADD_ONE(&tests, "pidfd of the connected process; none for a peer in a foreign PID namespace", alive);
	ROWS_ADD_ONE(&tests, "no SO_PEERPIDFD: pidfd opened by pid if it is still the same process", old_kernel);
	return rows_run(&tests, "peer");
}
