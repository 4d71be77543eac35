#include "cli/measure.h"

#include "base/num.h"
#include "base/util.h"
#include "cli/command.h"
#include "lib/tracker_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_peer(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return -errno;
	int peer_fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	return peer_fd >= 0 ? peer_fd : -errno;
}

static int watch(const struct control *control, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(control->watch_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int control_open(struct control *control, const char *text, struct wattle_error *reterr)
{
	int64_t fd;
	*control = (struct control){.fd = -1, .peer_fd = -1, .watch_fd = -1};
	if (num_parse_i64(text, &fd) < 0 || fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0)
		return error_set(reterr, -EINVAL, "--control-fd: '%s' is not an open descriptor", text);
	control->fd = (int)fd;
	int r = control->peer_fd = open_peer(control->fd);
	if (r >= 0)
		r = control->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r >= 0)
		r = watch(control, control->fd);
	if (r >= 0)
		r = watch(control, control->peer_fd);
	if (r >= 0)
		return 0;
	control_close(control);
	return error_set(reterr, -EINVAL, "--control-fd: '%s' is not a socket of a running process", text);
}

void control_close(struct control *control)
{
	const int fds[] = {control->fd, control->peer_fd, control->watch_fd};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*control = (struct control){.fd = -1, .peer_fd = -1, .watch_fd = -1};
}

static bool peer_is_gone(const struct control *control)
{
	struct pollfd peer = {.fd = control->peer_fd, .events = POLLIN};
	return poll(&peer, 1, 0) == 1;
}

// Header and body are sent in one piece.
static void read_ended(struct control *control)
{
	struct tracker_ended ended;
	if (recv(control->fd, &ended, sizeof(ended), MSG_DONTWAIT) != (ssize_t)sizeof(ended))
		return;
	control->ended = ended;
	control->has_ended = true;
}

bool control_read(struct control *control)
{
	if (peer_is_gone(control))
		return true;
	struct tracker_message message;
	ssize_t n = recv(control->fd, &message, sizeof(message), MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(message) && tracker_message_is(&message, "ended") &&
		message.size == sizeof(control->ended))
		read_ended(control);
	if (n == (ssize_t)sizeof(message))
		return tracker_message_is(&message, "stop");
	bool nothing_yet = n < 0 && (errno == EAGAIN || errno == EINTR);
	if (!nothing_yet) // closed: the library's process executed another program, or closed its descriptors
		epoll_ctl(control->watch_fd, EPOLL_CTL_DEL, control->fd, NULL);
	return false;
}

/* The library may take any time until it reads. A forked child may keep the other end open after the library's process has died,
 * so the process is watched as well. */
static bool wait_writable(const struct control *control)
{
	struct pollfd fds[] = {{.fd = control->fd, .events = POLLOUT}, {.fd = control->peer_fd, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return fds[1].revents == 0;
}

static bool send_all(const struct control *control, const void *bytes, size_t size)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t n = send(control->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			at += n;
			size -= (size_t)n;
		} else if (errno != EINTR && (errno != EAGAIN || !wait_writable(control))) {
			return false;
		}
	}
	return true;
}

void control_send(const struct control *control, const char *word, int code, const char *bytes, size_t size)
{
	struct tracker_message message = tracker_message(word, code, size);
	if (send_all(control, &message, sizeof(message)))
		send_all(control, bytes, size);
}

int control_refuse(const struct control *control, int status, const struct wattle_error *error)
{
	if (control == NULL)
		return cli_fail(status, error);
	control_send(control, "error", error->code, error->text, strlen(error->text));
	return status;
}
