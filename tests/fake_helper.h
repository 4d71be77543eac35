/* A helper with programmable replies, in a process of its own, to test clients with one that is slow, silent,
 * incomplete, of another version, or dead. The test and the helper share `struct fake_table`. */
#pragma once

#include "base/util.h"
#include "proto/protocol.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum fake_manner {
	FAKE_HONEST,
	FAKE_SILENT,    // takes the request and does not answer
	FAKE_HALF,      // half of a reply, then nothing
	FAKE_PIECES,    // a whole reply, in pieces
	FAKE_MAGIC,     // of another version
	FAKE_TYPE,      // a reply to another request
	FAKE_RESERVED,  // reserved bytes are not 0
	FAKE_POSITIVE,  // an invalid code
	FAKE_MANY,      // states more readings than fit
	FAKE_REFUSES,   // -EPERM with a text without a terminator
	FAKE_HANGS_UP,  // closes the connection
	FAKE_HALF_GONE, // half of a reply, then closes the connection
};

enum { FAKE_CLIENTS_MAX = 16, FAKE_COUNTERS_MAX = 24 };

struct fake_table {
	enum fake_manner hello, other; // to PROTO_HELLO, to all others
	uint32_t may_read, read_period_us;
	uint32_t n_counters;
	char names[FAKE_COUNTERS_MAX][PROTO_NAME_SIZE];
	struct proto_reading readings[FAKE_COUNTERS_MAX];
	struct proto_reply outcome; // to the types that request one: code and outcome
	struct proto_device device; // number 0
	struct proto_request last;  // as received
	// Log of requests.
	uint32_t n_connections, n_asked[PROTO_RESET + 1];
};

struct fake_helper {
	struct fake_table *table; // shared
	pid_t pid;
	char folder[64], socket[96];
};

static inline void fake_answer(struct fake_table *table, const struct proto_request *request, struct proto_reply *reply)
{
	*reply = (struct proto_reply){.magic = PROTO_MAGIC, .type = request->type};
	switch (request->type) {
	case PROTO_HELLO:
		reply->hello = (struct proto_hello){.n_counters = table->n_counters,
			.n_devices = 1,
			.may_read = table->may_read,
			.may_cap = 1,
			.read_period_us = table->read_period_us,
			.pid = (uint32_t)getpid()};
		break;
	case PROTO_COUNTER:
		if (request->number < table->n_counters)
			memcpy(reply->counter.name, table->names[request->number], PROTO_NAME_SIZE);
		else
			reply->code = -ENOENT;
		break;
	case PROTO_READ:
		reply->readings.count = request->count;
		for (uint32_t i = 0; i < request->count && i < PROTO_COUNTERS_MAX; i++)
			reply->readings.readings[i] = table->readings[request->number + i];
		break;
	case PROTO_DEVICE:
		reply->device = table->device;
		reply->code = request->number == 0 ? 0 : -ENOENT;
		break;
	default:
		reply->code = table->outcome.code;
		reply->outcome = table->outcome.outcome;
	}
}

static inline void fake_send(int fd, const void *data, size_t size)
{
	if (send(fd, data, size, MSG_NOSIGNAL) < 0)
		return; // the client has gone, which is no error here
}

// False: close the connection.
static inline bool fake_reply(int fd, enum fake_manner manner, struct proto_reply *reply)
{
	const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
	const char *bytes = (const char *)reply;
	reply->magic ^= manner == FAKE_MAGIC;
	reply->type += manner == FAKE_TYPE;
	reply->reserved2 = manner == FAKE_RESERVED;
	if (manner == FAKE_POSITIVE)
		reply->code = 7;
	if (manner == FAKE_MANY)
		reply->readings.count = PROTO_COUNTERS_MAX + 1;
	if (manner == FAKE_REFUSES) {
		reply->code = -EPERM;
		memset(reply->outcome.text, 'n', sizeof(reply->outcome.text));
	}
	if (manner == FAKE_SILENT || manner == FAKE_HANGS_UP)
		return manner == FAKE_SILENT;
	if (manner == FAKE_HALF || manner == FAKE_HALF_GONE) {
		fake_send(fd, bytes, sizeof(*reply) / 2);
		return manner == FAKE_HALF;
	}
	size_t piece = manner == FAKE_PIECES ? 40 : sizeof(*reply);
	for (size_t at = 0; at < sizeof(*reply); at += piece) {
		fake_send(fd, bytes + at, piece);
		if (manner == FAKE_PIECES)
			nanosleep(&pause, NULL);
	}
	return true;
}

static inline bool fake_serve(struct fake_table *table, int fd)
{
	struct proto_request request;
	struct proto_reply reply;
	if (recv(fd, &request, sizeof(request), MSG_WAITALL) != sizeof(request) || request.magic != PROTO_MAGIC)
		return false;
	table->last = request;
	if (request.type <= PROTO_RESET)
		table->n_asked[request.type]++;
	fake_answer(table, &request, &reply);
	return fake_reply(fd, request.type == PROTO_HELLO ? table->hello : table->other, &reply);
}

_Noreturn static inline void fake_main(struct fake_table *table, int listening)
{
	struct pollfd fds[1 + FAKE_CLIENTS_MAX] = {{.fd = listening, .events = POLLIN}};
	for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	while (poll(fds, ARRAY_SIZE(fds), -1) > 0) {
		for (size_t i = 1; i < ARRAY_SIZE(fds); i++) {
			if (fds[i].fd < 0 || fds[i].revents == 0 || fake_serve(table, fds[i].fd))
				continue;
			close(fds[i].fd);
			fds[i].fd = -1;
		}
		for (size_t i = 1; fds[0].revents != 0 && i < ARRAY_SIZE(fds); i++) {
			if (fds[i].fd >= 0)
				continue;
			fds[i].fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
			table->n_connections++;
			break;
		}
	}
	_exit(1);
}

static inline void fake_start(struct fake_helper *helper)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	text_copy(address.sun_path, sizeof(address.sun_path), helper->socket);
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlink(helper->socket);
	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(listening, 8) < 0)
		abort();
	helper->pid = fork();
	if (helper->pid == 0)
		fake_main(helper->table, listening);
	close(listening);
}

static inline void fake_make(struct fake_helper *helper)
{
	*helper = (struct fake_helper){.folder = "/tmp/wattle-helper-XXXXXX"};
	helper->table = mmap(NULL, sizeof(*helper->table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (helper->table == MAP_FAILED || mkdtemp(helper->folder) == NULL)
		abort();
	snprintf(helper->socket, sizeof(helper->socket), "%s/wattled.sock", helper->folder);
	helper->table->may_read = 1;
	helper->table->read_period_us = 1000;
}

static inline void fake_kill(struct fake_helper *helper)
{
	if (helper->pid <= 0)
		return;
	kill(helper->pid, SIGKILL);
	waitpid(helper->pid, NULL, 0);
	helper->pid = 0;
}

static inline void fake_finish(struct fake_helper *helper)
{
	fake_kill(helper);
	unlink(helper->socket);
	rmdir(helper->folder);
	munmap(helper->table, sizeof(*helper->table));
}
