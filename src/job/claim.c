#include "job/job.h"

#include "base/fnv.h"
#include "base/util.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Connecting is refused between an owner's bind and listen, and while an owner is exiting. Both pass in a moment; a
 * socket that never listens is not a recorder's. The first attempt waits about 50 ms, because a sensor without a reader
 * until a later tick would lose data. */
enum { TRIES = 10, TRIES_AT_FIRST = 400, REFUSALS_MAX = 20, BACKLOG = 4096 };
static const struct timespec retry_pause = {.tv_nsec = 100000};

static socklen_t make_address(const struct claim *claim, struct sockaddr_un *ret_address)
{
	size_t length = strlen(claim->name);
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path + 1, claim->name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

// Connections of the others stay in the backlog and need not be accepted: the kernel closes them with the socket.
static int own(struct claim *claim, int fd)
{
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	claim->fd = fd;
	claim->held = true;
	claim->owner_pid = VALUE_MISSING;
	return 0;
}

static int follow(struct claim *claim, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.uid != geteuid())
		return -EPERM;
	claim->fd = fd;
	claim->held = false;
	claim->owner_pid = peer.pid > 0 ? peer.pid : VALUE_MISSING; // 0: in a pid namespace that is not visible here
	return 0;
}

// -ECONNREFUSED: the name is taken and nobody listens; -EAGAIN: the backlog is full. Others: sockets are not available
// here.
static int try_once(struct claim *claim)
{
	struct sockaddr_un address;
	socklen_t length = make_address(claim, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r;
	if (bind(fd, (struct sockaddr *)&address, length) == 0)
		r = own(claim, fd);
	else if (errno != EADDRINUSE)
		r = -errno;
	else if (connect(fd, (struct sockaddr *)&address, length) == 0)
		r = follow(claim, fd);
	else
		r = -errno;
	if (r < 0)
		close(fd);
	return r;
}

static void resolve(struct claim *claim, int tries)
{
	int r = -ECONNREFUSED;
	for (int i = 0; i < tries && r == -ECONNREFUSED; i++) {
		if (i > 0)
			nanosleep(&retry_pause, NULL);
		r = try_once(claim);
	}
	if (r == 0)
		claim->refusals = 0;
	else if ((r != -ECONNREFUSED && r != -EAGAIN) || claim->refusals >= REFUSALS_MAX)
		claim_hold_alone(claim);
	else if (r == -ECONNREFUSED)
		claim->refusals++;
}

void claim_open(struct claim *claim, const char *key)
{
	*claim = (struct claim){.fd = -1, .owner_pid = VALUE_MISSING};
	snprintf(claim->name, sizeof(claim->name), "wattle-claim-%u-%016llx%016llx", (unsigned)geteuid(),
		(unsigned long long)fnv_u64(FNV_START_U64, key), (unsigned long long)fnv_u64(88172645463325252u, key));
	resolve(claim, TRIES_AT_FIRST);
	if (!claim->held && claim->refusals > 0)
		claim_hold_alone(claim);
}

static bool is_hung_up(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

bool claim_turn(struct claim *claim)
{
	if (claim->held || (claim->fd >= 0 && !is_hung_up(claim->fd)))
		return false;
	int fd = claim->fd;
	claim_close(claim);
	resolve(claim, TRIES);
	return claim->held || claim->fd != -1 || fd != -1;
}

void claim_hold_alone(struct claim *claim)
{
	claim_close(claim);
	claim->held = true;
}

void claim_close(struct claim *claim)
{
	if (claim->fd >= 0)
		close(claim->fd);
	claim->fd = -1;
	claim->held = false;
	claim->owner_pid = VALUE_MISSING;
}
