#include "cap/internal.h"

#include "base/cleanup.h"
#include "base/spawn.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS_MAX = 32, READY_MS = 120000 }; // NVML needs seconds for each GPU with a sleeping driver

struct cap_guard {
	int fd; // owned: this process's end of the socket
	unsigned n_leases;
};

/* ---- start ---- */

static int open_line(int fds[2], struct wattle_error *reterr)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(reterr, -errno, "can't create a socket for the limit's guard: %s", strerror(errno));
	// Above the descriptor it gets in the guard, and above stdio, which the program may have closed.
	for (int i = 0; i < 2; i++) {
		fds[i] = fcntl(pair[i], F_DUPFD_CLOEXEC, SPAWN_CONTROL_FD + 1);
		close(pair[i]);
	}
	if (fds[0] >= 0 && fds[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return error_set(reterr, -EMFILE, "too many open files to start the limit's guard");
}

// The order and its descriptors wait in the socket until the guard runs.
static int send_order(int fd, const struct guard_order *order, const struct journal *journal,
	struct wattle_error *reterr)
{
	wattle_cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (pidfd < 0)
		return error_set(reterr, -errno, "a limit's guard needs pidfd_open (Linux 5.3 or newer): %s",
			strerror(errno));
	struct iovec part = {.iov_base = (void *)(uintptr_t)order, .iov_len = sizeof(*order)};
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int[GUARD_FDS]))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	*rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int[GUARD_FDS]))};
	memcpy(CMSG_DATA(rights), (int[GUARD_FDS]){[GUARD_PIDFD] = pidfd, [GUARD_JOURNAL] = journal->fd},
		sizeof(int[GUARD_FDS]));
	ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
	return n == (ssize_t)sizeof(*order)
		? 0
		: error_set(reterr, -errno, "can't send to the limit's guard: %s", strerror(errno));
}

static int spawn(const struct cap_guard_program *program, int line_fd, struct wattle_error *reterr)
{
	char *argv[WORDS_MAX + 3];
	char pid[16];
	size_t n = 0;
	for (; program->argv[n] != NULL; n++) {
		if (n == WORDS_MAX)
			return error_set(reterr, -E2BIG, "too many arguments before --cap-guard");
		argv[n] = (char *)(uintptr_t)program->argv[n];
	}
	snprintf(pid, sizeof(pid), "%d", (int)getpid()); // shown by `ps`
	argv[n++] = (char *)(uintptr_t) "--cap-guard";
	argv[n++] = pid;
	argv[n] = NULL;
	const struct spawn start = {.program = program->program != NULL ? program->program : argv[0],
		.argv = argv,
		.environment = environ,
		.control_fd = line_fd,
		.quiet = true};
	pid_t r = spawn_detached(&start);
	if (r >= 0)
		return 0;
	return error_set(reterr, (int)r, "can't start the limit's guard, %s: %s", argv[0], strerror((int)-r));
}

static int await_answer(int fd, struct guard_answer *answer, struct wattle_error *reterr)
{
	struct pollfd line = {.fd = fd, .events = POLLIN};
	int r;
	do
		r = poll(&line, 1, READY_MS);
	while (r < 0 && errno == EINTR);
	ssize_t n = r > 0 ? recv(fd, answer, sizeof(*answer), MSG_DONTWAIT) : -1;
	if (r == 0)
		return error_set(reterr, -ETIMEDOUT, "the limit's guard is not ready after %d s; nothing was changed",
			READY_MS / 1000);
	if (n != (ssize_t)sizeof(*answer))
		return error_set(reterr, -EPIPE,
			"the limit's guard ended before it was ready; nothing was changed; check that it has "
			"the same version");
	if (answer->code < 0)
		return error_set(reterr, answer->code, "%s", answer->text);
	return 0;
}

// Sends one order and reads one answer. The caller owns *ret_fd.
static int commission(const struct cap_guard_program *program, const struct journal *journal,
	const struct guard_order *order, struct guard_answer *answer, int *ret_fd, struct wattle_error *reterr)
{
	int fds[2] = {-1, -1};
	int r = open_line(fds, reterr);
	if (r < 0)
		return r;
	r = send_order(fds[0], order, journal, reterr);
	if (r == 0)
		r = spawn(program, fds[1], reterr);
	close(fds[1]); // from now on an end of file means that the guard died
	if (r == 0)
		r = await_answer(fds[0], answer, reterr);
	if (r < 0)
		close(fds[0]);
	else
		*ret_fd = fds[0];
	return r;
}

static void fill_order(struct guard_order *order, const struct journal *journal)
{
	*order = (struct guard_order){.size = sizeof(*order)};
	cap_keeper_self(&order->keeper);
	text_copy(order->journal_path, sizeof(order->journal_path), journal->path);
}

int guard_start(const struct cap_guard_program *program, const struct journal *journal, struct cap_guard **ret_guard,
	struct wattle_error *reterr)
{
	if (program->shared != NULL && *program->shared != NULL && !guard_is_dead(*program->shared)) {
		(*program->shared)->n_leases++;
		*ret_guard = *program->shared;
		return 0;
	}
	struct guard_order order;
	struct guard_answer answer;
	struct cap_guard *guard = calloc(1, sizeof(*guard));
	if (guard == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	guard->n_leases = 1;
	fill_order(&order, journal);
	int r = commission(program, journal, &order, &answer, &guard->fd, reterr);
	if (r < 0) {
		free(guard);
		return r;
	}
	if (program->shared != NULL)
		*program->shared = guard;
	*ret_guard = guard;
	return 0;
}

int guard_hold_for(const struct cap_guard_program *program, const struct journal *journal,
	const struct cap_device *device, const struct cap_owner *owner, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct guard_order order;
	struct guard_answer answer;
	int fd;
	if (program == NULL || program->argv == NULL)
		return error_set(reterr, -EINVAL, "%s: a limit with a duration needs a guard", device->name);
	fill_order(&order, journal);
	order.for_ns = for_ns;
	order.value = value;
	order.what = device->what;
	order.owner = *owner;
	text_copy(order.id, sizeof(order.id), device->id);
	int r = commission(program, journal, &order, &answer, &fd, reterr);
	if (r < 0)
		return r;
	close(fd);
	*ret_outcome = answer.outcome;
	return 0;
}

/* ---- use and end of a running guard ---- */

int guard_fd(const struct cap_guard *guard)
{
	return guard->fd;
}

void guard_send(const struct cap_guard *guard, const struct journal_entry *lease)
{
	if (guard != NULL)
		(void)send(guard->fd, lease, sizeof(*lease), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool guard_is_dead(const struct cap_guard *guard)
{
	struct pollfd line = {.fd = guard->fd, .events = POLLIN};
	return poll(&line, 1, 0) != 0; // the guard sends nothing after its answer
}

void guard_end(const struct cap_guard_program *program, struct cap_guard *guard)
{
	if (guard == NULL || --guard->n_leases > 0)
		return;
	if (program->shared != NULL && *program->shared == guard)
		*program->shared = NULL;
	static const char done = GUARD_DONE; // closing the socket alone would look like the owner's death
	(void)send(guard->fd, &done, sizeof(done), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(guard->fd);
	free(guard);
}

void guard_disown(struct cap_guard *guard)
{
	if (guard == NULL || --guard->n_leases > 0)
		return;
	close(guard->fd);
	free(guard);
}
