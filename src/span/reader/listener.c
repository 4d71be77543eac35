#include "span/reader/reader.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS_PER_CALL = 8 };
static const int64_t SILENCE_NS = NS_PER_S;

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5
#endif

/* ---- the socket ---- */

static int make_address(struct ring_address *address)
{
	uint64_t random[3];
	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return -EAGAIN;
	address->token = random[0];
	snprintf(address->name, sizeof(address->name), "wattle-%016llx%016llx", (unsigned long long)random[1],
		(unsigned long long)random[2]);
	return 0;
}

static int listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; // sun_path begins with NUL: abstract socket
	size_t length = strlen(name);
	memcpy(address.sun_path + 1, name, length);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	if (bind(fd, (const struct sockaddr *)&address, size) == 0 && listen(fd, LISTENER_BACKLOG) == 0)
		return fd;
	int code = -errno;
	close(fd);
	return code;
}

static int wait_for(const struct listener *listener, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int listener_open(struct listener *listener, int epoll_fd, uint32_t flags, uint32_t n_records)
{
	*listener = (struct listener){.fd = -1,
		.epoll_fd = epoll_fd,
		.address = {.flags = flags, .n_records = n_records}};
	int r = make_address(&listener->address);
	if (r == 0)
		r = listen_at(listener->address.name);
	if (r < 0)
		return r;
	listener->fd = r;
	r = wait_for(listener, listener->fd);
	if (r < 0)
		listener_close(listener);
	return r;
}

void listener_close(struct listener *listener)
{
	for (size_t i = 0; i < listener->n_silent; i++)
		close(listener->silent[i].fd);
	listener->n_silent = 0;
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
}

/* ---- one message ---- */

// Takes the descriptors of a message: one is returned, any others are closed.
static int take_descriptor(struct msghdr *message, int *ret_count)
{
	int fd = -1, count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++, count++) {
			if (fd >= 0)
				close(fd);
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		}
	}
	*ret_count = count;
	return fd;
}

// Returns the descriptor of a ring; -EAGAIN: no message yet; -EINVAL: invalid message.
static int read_hello(int connection, struct ring_hello *ret_hello)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = ret_hello, .iov_len = sizeof(*ret_hello)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t size = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EINVAL;
	int count;
	int fd = take_descriptor(&message, &count);
	bool whole = size == (ssize_t)sizeof(*ret_hello) && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
	if (whole && count == 1)
		return fd;
	if (fd >= 0)
		close(fd);
	return -EINVAL;
}

static bool is_known_hello(const struct ring_hello *hello)
{
	uint32_t n = hello->n_records;
	return hello->magic == RING_MAGIC && hello->version == RING_VERSION && n >= RING_RECORDS_MIN &&
		n <= RING_RECORDS_MAX && (n & (n - 1)) == 0;
}

/* Maps memory of exactly that size, sealed against resizing. Files that are not memfds have no seals. */
static struct ring_header *map_ring(int fd, uint32_t n_records)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) != 0 ||
		st.st_size != (off_t)ring_bytes(n_records))
		return NULL;
	struct ring_header *header = mmap(NULL, ring_bytes(n_records), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return NULL;
	if (header->magic == RING_MAGIC && header->version == RING_VERSION && header->n_records == n_records)
		return header;
	munmap(header, ring_bytes(n_records));
	return NULL;
}

// Returns a pidfd of the peer. Without SO_PEERPIDFD it is opened by the pid, which must still belong to a process.
static int open_peer(int connection, pid_t pid)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0 || pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	// The process may have been reaped already: treat it as gone.
	if (pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0 && errno == ESRCH) {
		close(pidfd);
		pidfd = -1;
	}
	return pidfd;
}

static void receive(const struct listener *listener, int connection, const struct listener_callbacks *hooks,
	int ring_fd, const struct ring_hello *hello)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (!is_known_hello(hello) || getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
		peer.pid <= 0)
		return;
	struct received_ring received = {
		.hello = *hello,
		.pid = peer.pid,
		.uid = peer.uid,
		.pidfd = open_peer(connection, peer.pid),
		.has_token = hello->token == listener->address.token,
	};
	received.shown_pid = hooks->admit(hooks->data, &received);
	if (received.shown_pid > 0)
		received.header = map_ring(ring_fd, hello->n_records);
	if (received.header != NULL)
		hooks->take(hooks->data, &received);
	else if (received.pidfd >= 0)
		close(received.pidfd);
}

// Returns whether the connection is finished.
static bool listen_to(const struct listener *listener, int connection, const struct listener_callbacks *hooks)
{
	struct ring_hello hello;
	int fd = read_hello(connection, &hello);
	if (fd == -EAGAIN)
		return false;
	if (fd < 0)
		return true;
	receive(listener, connection, hooks, fd, &hello);
	close(fd);
	return true;
}

/* ---- connections ---- */

static void drop_silent(struct listener *listener, size_t at)
{
	close(listener->silent[at].fd); // this removes it from the epoll set
	memmove(&listener->silent[at], &listener->silent[at + 1],
		(--listener->n_silent - at) * sizeof(listener->silent[0]));
}

static void keep_silent(struct listener *listener, const struct listener_callbacks *hooks, int connection, int64_t now_ns)
{
	if (listener->n_silent == LISTENER_SILENT_MAX) {
		// Its message may have arrived since it was last read; the sender has no reply to wait for.
		(void)listen_to(listener, listener->silent[0].fd, hooks);
		drop_silent(listener, 0);
	}
	if (wait_for(listener, connection) < 0) {
		close(connection);
		return;
	}
	listener->silent[listener->n_silent++] = (struct listener_silent){connection, now_ns};
}

static void serve_silent(struct listener *listener, const struct listener_callbacks *hooks, int64_t now_ns)
{
	for (size_t i = 0; i < listener->n_silent;) {
		bool is_done = listen_to(listener, listener->silent[i].fd, hooks) ||
			now_ns - listener->silent[i].since_ns > SILENCE_NS;
		if (is_done)
			drop_silent(listener, i);
		else
			i++;
	}
}

bool listener_serve(struct listener *listener, const struct listener_callbacks *hooks, int64_t now_ns)
{
	serve_silent(listener, hooks, now_ns);
	for (int i = 0; i < CONNECTIONS_PER_CALL; i++) {
		int connection = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (connection < 0)
			return errno == EINTR || errno == ECONNABORTED;
		listener->n_accepted++;
		if (listen_to(listener, connection, hooks))
			close(connection);
		else
			keep_silent(listener, hooks, connection, now_ns);
	}
	return true;
}
