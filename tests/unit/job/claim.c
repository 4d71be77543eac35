#include "job/job.h"

#include "base/util.h"
#include "rows.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_key(char key[64], const char *thing)
{
	snprintf(key, 64, "test %d %s", getpid(), thing);
}

// A child that holds the claim until it is killed, or until its pipe asks it to end.
static pid_t start_owner(const char *key, int *ret_pipe)
{
	int ready[2], go[2];
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct claim claim;
		char byte = 0;
		claim_open(&claim, key);
		close(go[1]);
		if (write(ready[1], claim.held ? "+" : "-", 1) == 1 && read(go[0], &byte, 1) >= 0)
			claim_close(&claim);
		_exit(0);
	}
	char held;
	assert_int_equal(read(ready[0], &held, 1), 1);
	assert_int_equal(held, '+');
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	*ret_pipe = go[1];
	return pid;
}

static void await_turn(struct claim *claim)
{
	struct pollfd poll_fd = {.fd = claim->fd, .events = POLLIN | POLLRDHUP};
	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	assert_true(claim_turn(claim));
}

static void the_first_holds(void **state)
{
	char key[64], other_key[64];
	make_key(key, "a");
	make_key(other_key, "b");
	struct claim first, second, other;
	claim_open(&first, key);
	claim_open(&second, key);
	claim_open(&other, other_key);
	assert_true(first.held);
	assert_false(second.held);
	assert_int_equal(second.owner_pid, getpid());
	assert_true(other.held); // another device
	assert_false(claim_turn(&second));
	claim_close(&first);
	await_turn(&second);
	assert_true(second.held);
	claim_close(&second);
	claim_close(&second);
	claim_close(&other);
}

static void taken_over(bool by_kill)
{
	char key[64];
	int pipe_fd, status;
	make_key(key, by_kill ? "killed" : "ended");
	pid_t owner = start_owner(key, &pipe_fd);
	struct claim claim;
	claim_open(&claim, key);
	assert_false(claim.held);
	assert_int_equal(claim.owner_pid, owner);
	if (by_kill)
		kill(owner, SIGKILL);
	close(pipe_fd);
	await_turn(&claim);
	assert_true(claim.held);
	waitpid(owner, &status, 0);
	claim_close(&claim);
}

static void taken_over_at_the_end(void **state)
{
	taken_over(false);
}

static void taken_over_from_the_killed(void **state)
{
	taken_over(true);
}

enum { CROWD = 300 };

static void one_of_many(void **state)
{
	static struct claim claims[CROWD];
	char key[64];
	int pipe_fd, status;
	make_key(key, "crowd");
	pid_t owner = start_owner(key, &pipe_fd);
	for (int i = 0; i < CROWD; i++)
		claim_open(&claims[i], key);
	kill(owner, SIGKILL);
	close(pipe_fd);
	waitpid(owner, &status, 0);
	for (int round = 0; round < 3; round++) // a process that cannot wait tries again at its ticks
		for (int i = 0; i < CROWD; i++)
			claim_turn(&claims[i]);
	int held = 0;
	for (int i = 0; i < CROWD; i++)
		held += claims[i].held;
	assert_int_equal(held, 1);
	for (int i = 0; i < CROWD; i++)
		claim_close(&claims[i]);
}

static void nobody_listens(void **state)
{
	char key[64];
	make_key(key, "squatter");
	struct claim claim;
	claim_open(&claim, key); // to get its name
	char name[CLAIM_NAME_SIZE];
	memcpy(name, claim.name, sizeof(name));
	claim_close(&claim);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path + 1, name, strlen(name));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	claim_open(&claim, key);
	assert_true(claim.held); // read at once: unread messages are lost
	assert_int_equal(claim.fd, -1);
	close(fd);
	claim_close(&claim);
}

static void somebody_else_listens(void **state)
{
	if (geteuid() != 0)
		SKIP_BECAUSE("needs root, to become another user");
	char key[64];
	make_key(key, "foreign");
	struct claim claim;
	claim_open(&claim, key);
	char name[CLAIM_NAME_SIZE];
	memcpy(name, claim.name, sizeof(name));
	claim_close(&claim);
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		memcpy(address.sun_path + 1, name, strlen(name));
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		bool is_up = setuid(65534) == 0 &&
			bind(fd, (struct sockaddr *)&address,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0 &&
			listen(fd, 5) == 0;
		if (write(ready[1], is_up ? "+" : "-", 1) == 1)
			pause();
		_exit(0);
	}
	char up;
	assert_int_equal(read(ready[0], &up, 1), 1);
	assert_int_equal(up, '+');
	claim_open(&claim, key);
	assert_true(claim.held);
	int status;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	claim_close(&claim);
}

static void kin(void **state)
{
	assert_true(job_owner_is_related(getppid(), 1 << 30)); // an ancestor
	assert_false(job_owner_is_related(getpid(), 1 << 30));
	assert_true(job_owner_is_related(getpid(), getppid())); // its parent is the measured program
}

static void rank_of_an_owner(void **state)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		static char rank[] = "RANK=3", size[] = "WORLD_SIZE=4", other[] = "A=1", name[] = "cat";
		char *const environment[] = {other, rank, size, NULL}, *const argv[] = {name, NULL};
		dup2(ready[0], 0); // a socket that never receives anything
		execve("/bin/cat", argv, environment);
		_exit(1);
	}
	int64_t rank = VALUE_MISSING;
	for (int i = 0; i < 1000 && !value_ok(rank); i++, usleep(1000)) // until it has become the other program
		rank = job_owner_rank(pid);
	assert_int_equal(rank, 3);
	int status;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(job_owner_rank(pid), VALUE_MISSING);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "first process owns the device, others wait; devices are independent", the_first_holds);
	ROWS_ADD_ONE(&tests, "owner ends: a waiting process takes over", taken_over_at_the_end);
	ROWS_ADD_ONE(&tests, "owner is killed: a waiting process takes over", taken_over_from_the_killed);
	ROWS_ADD_ONE(&tests, "300 waiting processes: one takes over", one_of_many);
	ROWS_ADD_ONE(&tests, "name bound by a socket that never listens: the device is owned alone", nobody_listens);
	ROWS_ADD_ONE(&tests, "socket of another user: not trusted", somebody_else_listens);
	ROWS_ADD_ONE(&tests, "process that measures the same program: recognised as related", kin);
	ROWS_ADD_ONE(&tests, "rank of an owner: read from its environment", rank_of_an_owner);
	return rows_run(&tests, "claim");
}
