/* A minimal writer of span rings for tests of the reader, which writes valid or invalid records. It is separate from the
 * library's writer: a mistake common to both sides would not be noticed, and the library can't write invalid records. */
#pragma once

#include "span/ring.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* As the library: the recorder closes connections that wait for a CPU before they send, while others open many. */
enum { RING_CLIENT_TRIES = 300 };

struct ring_client {
	struct ring_header *header;
	struct span_record *records;
	uint64_t head;
	uint32_t mask;
};

static inline int64_t ring_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// WATTLE_RING in parts. False: there is none.
static inline bool ring_client_address(unsigned *ret_n_records, uint64_t *ret_token, char name[64])
{
	const char *text = getenv("WATTLE_RING");
	unsigned version, flags;
	unsigned long long token;
	if (text == NULL || sscanf(text, "%u:%u:%u:%llx:@%63s", &version, &flags, ret_n_records, &token, name) != 5)
		return false;
	*ret_token = token;
	return true;
}

static inline int ring_client_connect(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path + 1, name, strlen(name));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, size) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

// n_fds of the same descriptor go with it.
static inline bool ring_client_send(int connection, const void *bytes, size_t size, int fd, int n_fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (n_fds > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		for (int i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	}
	return sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

static inline int ring_client_memory(size_t bytes, int seals)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		return -1;
	return fd;
}

// A ring of this thread, with n_records records; 0: as many as the recorder requested. image: any number, another after exec.
static inline bool ring_client_open_sized(struct ring_client *client, uint32_t image, uint32_t n_records)
{
	unsigned asked_records;
	char name[64];
	struct ring_hello hello = {.magic = RING_MAGIC, .version = RING_VERSION, .image = image};
	if (!ring_client_address(&asked_records, &hello.token, name))
		return false;
	if (n_records == 0)
		n_records = asked_records;
	hello.n_records = n_records;
	hello.pid = getpid();
	hello.tid = (int32_t)syscall(SYS_gettid);
	int fd = ring_client_memory(ring_bytes(n_records), F_SEAL_SHRINK | F_SEAL_GROW);
	client->header = mmap(NULL, ring_bytes(n_records), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || client->header == MAP_FAILED)
		return false;
	client->header->magic = RING_MAGIC;
	client->header->version = RING_VERSION;
	client->header->n_records = n_records;
	client->records = (struct span_record *)((char *)client->header + RING_HEADER_BYTES);
	client->mask = n_records - 1;
	client->head = 0;
	bool is_sent = false;
	for (int i = 0; i < RING_CLIENT_TRIES && !is_sent; i++) {
		if (i > 0)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		int connection = ring_client_connect(name);
		is_sent = connection >= 0 && ring_client_send(connection, &hello, sizeof(hello), fd, 1);
		if (connection >= 0)
			close(connection);
	}
	close(fd);
	return is_sent;
}

static inline bool ring_client_open(struct ring_client *client, uint32_t image)
{
	return ring_client_open_sized(client, image, 0);
}

static inline bool ring_client_has_room(const struct ring_client *client, uint32_t n)
{
	uint64_t tail = atomic_load_explicit(&client->header->tail, memory_order_acquire);
	return client->head + n - tail <= client->mask + 1;
}

static inline void ring_client_put(struct ring_client *client, const void *record)
{
	memcpy(&client->records[client->head++ & client->mask], record, sizeof(struct span_record));
}

static inline void ring_client_publish(struct ring_client *client)
{
	atomic_store_explicit(&client->header->head, client->head, memory_order_release);
}

static inline void ring_client_name(struct ring_client *client, uint16_t slot, const char *name)
{
	const struct span_record record = {.kind = RECORD_NAME, .slot = slot, .n = (uint32_t)strlen(name)};
	ring_client_put(client, &record);
	char part[16];
	for (size_t at = 0; at < record.n; at += sizeof(part)) {
		memset(part, 0, sizeof(part));
		memcpy(part, name + at, record.n - at < sizeof(part) ? record.n - at : sizeof(part));
		ring_client_put(client, part);
	}
	ring_client_publish(client);
}

static inline void ring_client_event(struct ring_client *client, enum record_kind kind, uint16_t slot, uint32_t n)
{
	const struct span_record record = {.t_ns = ring_now_ns(), .kind = (uint8_t)kind, .slot = slot, .n = n};
	ring_client_put(client, &record);
	ring_client_publish(client);
}

static inline void ring_client_extra(struct ring_client *client, enum record_kind kind, uint16_t slot,
	struct record_extra extra)
{
	const struct span_record record = {.t_ns = ring_now_ns(), .kind = (uint8_t)kind, .slot = slot};
	ring_client_put(client, &record);
	ring_client_put(client, &extra);
	ring_client_publish(client);
}
