/* The two keeper processes without cgroup v2: whichever ends, no descendant of the recorder survives. */
#include "../src/spank/keeper.c"

#include "base/clock.h"
#include "rows.h"

#include <sys/socket.h>

enum { WAIT_MS = 5000, LIFE_S = 30 }; // LIFE_S: of processes that a failing keeper leaves behind

void own_cgroup_make(struct own_cgroup *ret_cgroup)
{
	*ret_cgroup = (struct own_cgroup){.fd = -1};
}

void own_cgroup_join(const struct own_cgroup *cgroup)
{
	assert_int_equal(cgroup->fd, -1);
}

void own_cgroup_kill(const struct own_cgroup *cgroup)
{
	assert_int_equal(cgroup->fd, -1);
}

int own_cgroup_remove(struct own_cgroup *cgroup)
{
	return cgroup->fd == -1 ? 0 : -EBUSY;
}

// An orphan in a session of its own, then the recorder: it reports its pids and waits for a byte.
_Noreturn void recorder_start(const struct recorder_start *start)
{
	sigset_t none;
	char byte;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	pid_t child = fork();
	if (child == 0) {
		setsid();
		if (fork() == 0) {
			alarm(LIFE_S);
			for (;;)
				pause();
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
	alarm(LIFE_S);
	const pid_t pids[] = {getpid(), start->keeper == getppid() ? getppid() : -1};
	(void)!write(start->control_fd, pids, sizeof(pids));
	(void)!read(start->error_fd, &byte, 1);
	_exit(0);
}

enum event { GUARD_KILLED, KEEPER_KILLED, LINE_CLOSED, RECORDER_ENDED };
static const struct row {
	const char *teaches;
	enum event event;
} rows[] = {
	{"the first keeper is killed: all descendants end", GUARD_KILLED},
	{"the second keeper is killed: all descendants end", KEEPER_KILLED},
	{"the pipe is closed: all descendants end", LINE_CLOSED},
	{"the recorder exits: all descendants end", RECORDER_ENDED},
};

static int oom_score(pid_t pid)
{
	char path[64];
	int score = -10000;
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	FILE *file = fopen(path, "re");
	if (file != NULL && fscanf(file, "%d", &score) != 1)
		score = -10000;
	if (file != NULL)
		fclose(file);
	return score;
}

// Root in a container may lack CAP_SYS_RESOURCE.
static bool can_lower_score(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		set_oom_score("-999");
		_exit(oom_score(getpid()) == -999 ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void wait_for_score(pid_t pid, int expected)
{
	int64_t end_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	while (oom_score(pid) != expected && clock_now_ns() < end_ns)
		nanosleep(&retry_pause, NULL);
	assert_int_equal(oom_score(pid), expected);
}

static void check(void **state)
{
	const struct row *row = *state;
	int line[2], alive[2], control[2], end[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	assert_true(pipe2(alive, O_CLOEXEC) == 0 && pipe2(control, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	pid_t guard = fork();
	if (guard == 0) {
		const struct recorder_start start = {.control_fd = control[1], .error_fd = end[0]};
		close(line[0]);
		close(end[1]);
		keeper_run(&start, line[1]);
	}
	close(line[1]);
	close(alive[1]);
	pid_t pids[2];
	assert_int_equal(read(control[0], pids, sizeof(pids)), sizeof(pids));
	assert_true(pids[1] > 1 && pids[1] != guard);
	wait_for_score(pids[0], 0);
	if (can_lower_score()) {
		wait_for_score(guard, -999);
		wait_for_score(pids[1], -999);
	}
	if (row->event == GUARD_KILLED || row->event == KEEPER_KILLED)
		kill(row->event == GUARD_KILLED ? guard : pids[1], SIGKILL);
	else
		close(row->event == LINE_CLOSED ? line[0] : end[1]);
	struct pollfd gone = {.fd = alive[0], .events = POLLIN};
	int n = poll(&gone, 1, WAIT_MS);
	assert_int_equal(waitpid(guard, NULL, 0), guard);
	assert_int_equal(n, 1);
	close(alive[0]);
	close(control[0]);
	close(control[1]);
	close(end[0]);
	close(row->event == LINE_CLOSED ? end[1] : line[0]);
	if (row->event != LINE_CLOSED && row->event != RECORDER_ENDED)
		close(end[1]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "keeper");
}
