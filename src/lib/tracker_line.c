#include "lib/tracker_wire.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

int tracker_send(int fd, const char *word)
{
	struct tracker_message message = tracker_message(word, 0, 0);
	ssize_t n; // 24 bytes into an empty socket are sent completely or not at all
	do
		n = send(fd, &message, sizeof(message), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(message) ? 0 : -EPIPE;
}

static int wait_for_bytes(int fd, int64_t deadline_ns)
{
	for (;;) {
		int64_t left_ns = deadline_ns - clock_now_ns();
		if (left_ns <= 0)
			return -ETIMEDOUT;
		struct pollfd event = {.fd = fd, .events = POLLIN};
		int n = poll(&event, 1, (int)(left_ns / NS_PER_MS) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int receive(int fd, int64_t deadline_ns, char *bytes, size_t size)
{
	while (size > 0) {
		int r = wait_for_bytes(fd, deadline_ns);
		if (r < 0)
			return r;
		ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return -EPIPE;
		if (n < 0)
			continue;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static int drop(int fd, int64_t deadline_ns, size_t size)
{
	char bytes[4096];
	int r = 0;
	for (size_t n; r == 0 && size > 0; size -= n) {
		n = size < sizeof(bytes) ? size : sizeof(bytes);
		r = receive(fd, deadline_ns, bytes, n);
	}
	return r;
}

int tracker_receive(int fd, int64_t deadline_ns, size_t most, struct tracker_reply *ret_word)
{
	struct tracker_message message;
	int r = receive(fd, deadline_ns, (char *)&message, sizeof(message));
	if (r < 0)
		return r;
	if (message.size > TRACKER_TEXT_MAX)
		return -EPROTO;
	if (message.size > most) {
		r = drop(fd, deadline_ns, message.size);
		message.size = 0;
	}
	if (r < 0)
		return r;
	char *text = malloc(message.size + 1);
	if (text == NULL)
		return -ENOMEM;
	r = receive(fd, deadline_ns, text, message.size);
	if (r < 0) {
		free(text);
		return r;
	}
	text[message.size] = '\0';
	*ret_word = (struct tracker_reply){message, text};
	return 0;
}
