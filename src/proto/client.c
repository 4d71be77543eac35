#include "proto/client.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// For a helper that systemd starts at the first connection.
enum { OPEN_TIMEOUT_MS = 2000 };

const char *proto_client_socket(const struct wattle_env *env)
{
	return env->helper != NULL ? env->helper : PROTO_SOCKET_DEFAULT;
}

const char *proto_client_remedy(int code)
{
	bool has_systemd = access("/run/systemd/system", F_OK) == 0;
	switch (code) {
	case -ENOENT:
	case -ECONNREFUSED:
		return has_systemd ? "sudo systemctl enable --now wattled.socket" : "sudo wattled";
	case -EACCES:
	case -EPERM:
		return "sudo usermod -aG wattle \"$USER\" && newgrp wattle";
	case -EPIPE: // not -ETIMEDOUT: a busy helper holds limits of other users, which a restart would end
	case -EPROTO:
		return has_systemd ? "sudo systemctl restart wattled.service" : "";
	default:
		return "";
	}
}

const char *proto_client_reason(int code)
{
	switch (code) {
	case -ENODEV:
		return "the helper is disabled (WATTLE_HELPER=off)";
	case -ENOENT:
	case -ECONNREFUSED:
		return "no helper is running";
	case -EACCES:
	case -EPERM:
		return "the helper does not serve this user";
	case -EAGAIN:
		return "the helper has too many connections";
	case -ETIMEDOUT:
		return "the helper does not respond";
	case -EPIPE:
		return "the helper closed the connection";
	case -EPROTO:
		return "the helper has another version";
	default:
		return strerror(-code);
	}
}

// Appends "… at SOCKET:" and the remedy.
static int no_helper(const struct proto_client *client, int code, struct wattle_error *reterr)
{
	const char *remedy = proto_client_remedy(code);
	bool is_off = code == -ENODEV;
	return error_set(reterr, code == -EPERM ? -EACCES : code, "%s%s%s%s%s", proto_client_reason(code),
		is_off ? "" : " at ", is_off ? "" : proto_client_socket(client->env), remedy[0] != '\0' ? "; " : "",
		remedy);
}

/* ---- waiting ---- */

static int wait_readable(int fd, int64_t deadline_ns)
{
	for (;;) {
		int64_t left_ns = deadline_ns - clock_now_ns();
		if (left_ns <= 0)
			return -ETIMEDOUT;
		struct timespec left = {left_ns / NS_PER_S, left_ns % NS_PER_S};
		struct pollfd wanted = {.fd = fd, .events = POLLIN};
		int r = ppoll(&wanted, 1, &left, NULL);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

// Receives all bytes, which may arrive in pieces.
static int receive(int fd, void *out, size_t size, int64_t deadline_ns)
{
	for (size_t n = 0; n < size;) {
		ssize_t length = recv(fd, (char *)out + n, size - n, MSG_DONTWAIT);
		if (length == 0)
			return -EPIPE;
		if (length > 0) {
			n += (size_t)length;
			continue;
		}
		int r = errno == EAGAIN ? wait_readable(fd, deadline_ns) : errno == EINTR ? 0 : -errno;
		if (r < 0)
			return r == -ECONNRESET ? -EPIPE : r;
	}
	return 0;
}

// Requests are sent one at a time, so the buffer always has room unless the helper has stopped reading.
static int send_all(int fd, const void *data, size_t size)
{
	ssize_t length;
	do
		length = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length == (ssize_t)size)
		return 0;
	if (length >= 0 || errno == EAGAIN)
		return -ETIMEDOUT;
	return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
}

/* ---- the connection ---- */

void proto_client_close(struct proto_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

bool proto_client_is_open(const struct proto_client *client)
{
	return client->fd >= 0 && client->owner_pid == getpid();
}

static int connect_within(struct proto_client *client, int timeout_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = proto_client_socket(client->env);
	// A set-uid program must not use the helper for its caller: the helper would see the program's owner as the client.
	if (strcmp(path, "off") == 0 || getauxval(AT_SECURE) != 0)
		return -ENODEV;
	if (!text_copy(address.sun_path, sizeof(address.sun_path), path))
		return -ENAMETOOLONG;
	if (timeout_ms <= 0)
		return -ETIMEDOUT; // because SO_SNDTIMEO 0 means no limit
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	// Time limit of connect() if the queue of pending connections is full.
	struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int code = -errno;
		close(fd);
		return code == -ENOTDIR ? -ENOENT : code;
	}
	client->fd = fd;
	client->owner_pid = getpid();
	return 0;
}

int proto_client_open_within(struct proto_client *client, const struct wattle_env *env, int timeout_ms,
	struct proto_hello *ret_hello, struct wattle_error *reterr)
{
	struct proto_request request = {.type = PROTO_HELLO};
	struct proto_reply reply;
	*client = (struct proto_client){.env = env, .fd = -1};
	int r = connect_within(client, timeout_ms);
	if (r < 0)
		return no_helper(client, r, reterr);
	r = proto_client_request(client, &request, timeout_ms, &reply, reterr);
	if (r < 0)
		proto_client_close(client);
	else
		*ret_hello = reply.hello;
	return r;
}

int proto_client_open(struct proto_client *client, const struct wattle_env *env, struct proto_hello *ret_hello,
	struct wattle_error *reterr)
{
	return proto_client_open_within(client, env, OPEN_TIMEOUT_MS, ret_hello, reterr);
}

/* ---- requests ---- */

// Another helper version may leave them unterminated; callers can rely on termination after this point.
static void terminate_texts(struct proto_reply *reply)
{
	if (reply->code < 0 || reply->type >= PROTO_SET)
		reply->outcome.text[sizeof(reply->outcome.text) - 1] = '\0';
	else if (reply->type == PROTO_COUNTER)
		reply->counter.name[sizeof(reply->counter.name) - 1] = '\0';
	if (reply->code < 0 || reply->type != PROTO_DEVICE)
		return;
	reply->device.name[sizeof(reply->device.name) - 1] = '\0';
	reply->device.id[sizeof(reply->device.id) - 1] = '\0';
	reply->device.lease_name[sizeof(reply->device.lease_name) - 1] = '\0';
}

static bool is_answer(const struct proto_reply *reply, const struct proto_request *request)
{
	bool counts = reply->type != PROTO_READ || reply->code < 0 || reply->readings.count <= PROTO_COUNTERS_MAX;
	return reply->magic == PROTO_MAGIC && reply->type == request->type && reply->reserved == 0 &&
		reply->reserved2 == 0 && reply->code <= 0 && reply->code > -4096 && counts;
}

static int converse(int fd, const struct proto_request *request, int timeout_ms, struct proto_reply *reply)
{
	int64_t deadline_ns = clock_now_ns() + timeout_ms * NS_PER_MS;
	int r = send_all(fd, request, sizeof(*request));
	if (r == 0)
		r = receive(fd, reply, sizeof(*reply), deadline_ns);
	return r == 0 && !is_answer(reply, request) ? -EPROTO : r;
}

static int lost(struct proto_client *client, int code, struct wattle_error *reterr)
{
	proto_client_close(client);
	return no_helper(client, code == -ETIMEDOUT || code == -EPROTO ? code : -EPIPE, reterr);
}

int proto_client_request(struct proto_client *client, struct proto_request *request, int timeout_ms,
	struct proto_reply *ret_reply, struct wattle_error *reterr)
{
	struct proto_reply reply;
	if (!proto_client_is_open(client))
		proto_client_close(client); // in a forked child: closes its copy only
	if (client->fd < 0)
		return error_set(reterr, -ENOTCONN, "no connection to the helper");
	request->magic = PROTO_MAGIC;
	int r = converse(client->fd, request, timeout_ms, &reply);
	if (r < 0)
		return lost(client, r, reterr);
	terminate_texts(&reply);
	if (reply.code < 0)
		return error_set(reterr, reply.code, "%s",
			reply.outcome.text[0] != '\0' ? reply.outcome.text : strerror(-reply.code));
	*ret_reply = reply;
	return 0;
}
