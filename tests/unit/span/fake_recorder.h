/* A recorder for tests of the writer: it receives rings and blocks, decodes them into lines such as "begin forward"
 * or "end 2", and reports every inconsistency that a decoder could find. */
#pragma once

#include "span/ring.h"
#include "span/span_file_format.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FAKE_RINGS_MAX = 512, FAKE_LOG_BYTES = 16384 };

struct reading {
	char *names[SPAN_NAME_SLOTS]; // owned
	uint32_t depth, deepest;
	int64_t latest_ns;
	uint64_t n_begins, n_ends, n_ended, n_names, n_metrics, n_marks, n_ranges, n_range_ends, n_threads,
		n_thread_ends;
	char log[FAKE_LOG_BYTES]; // until the buffer is full
	size_t log_bytes;
	const char *fault; // NULL: none
};

struct fake_ring {
	struct ring_hello hello;
	struct ring_header *header; // mapped
	size_t bytes;
	struct reading reading;
};

struct fake_recorder {
	int fd;
	char address[RING_ADDRESS_TEXT];
	struct fake_ring *rings; // owned, FAKE_RINGS_MAX
	size_t n;
};

static inline void reading_log(struct reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void reading_log(struct reading *reading, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	size_t buffer = sizeof(reading->log) - reading->log_bytes;
	int n = vsnprintf(reading->log + reading->log_bytes, buffer, format, arguments);
	va_end(arguments);
	if (n >= 0 && (size_t)n < buffer)
		reading->log_bytes += (size_t)n;
	else
		reading->log[reading->log_bytes] = '\0';
}

static inline void reading_fault(struct reading *reading, const char *fault)
{
	if (reading->fault == NULL)
		reading->fault = fault;
}

static inline const char *reading_name(struct reading *reading, uint64_t slot)
{
	if (slot < SPAN_NAME_SLOTS && reading->names[slot] != NULL)
		return reading->names[slot];
	reading_fault(reading, "a slot that was never defined");
	return "?";
}

static inline void reading_define(struct reading *reading, const struct span_record *record)
{
	if (record->slot >= SPAN_NAME_SLOTS) {
		reading_fault(reading, "a slot that there is not");
		return;
	}
	free(reading->names[record->slot]);
	reading->names[record->slot] = strndup((const char *)(record + 1), record->n);
	reading->n_names++;
}

static inline void reading_end(struct reading *reading, const struct span_record *record)
{
	if (record->n == 0 || record->n + record->slot > reading->depth) {
		reading_fault(reading, "an end without a begin");
		return;
	}
	reading->depth -= record->n;
	reading->n_ends++;
	reading->n_ended += record->n;
	if (record->slot > 0)
		reading_log(reading, "end below %u\n", record->slot);
	else if (record->n > 1)
		reading_log(reading, "end %u\n", record->n);
	else
		reading_log(reading, "end\n");
}

static inline void reading_category(struct reading *reading, const struct span_record *record, uint32_t n_before)
{
	const struct record_extra *extra = (const struct record_extra *)(record + n_before);
	if ((record->flags & RECORD_HAS_CATEGORY) != 0)
		reading_log(reading, " in %s", reading_name(reading, extra->number));
	reading_log(reading, "\n");
}

// One event, complete in memory.
static inline void reading_event(struct reading *reading, const struct span_record *record)
{
	const struct record_extra *extra = (const struct record_extra *)(record + 1);
	bool has_cpu = (record->flags & RECORD_HAS_CPU) != 0;
	switch ((enum record_kind)record->kind) {
	case RECORD_NAME:
		reading_define(reading, record);
		return;
	case RECORD_BEGIN:
		reading_log(reading, "begin %s", reading_name(reading, record->slot));
		reading_category(reading, record, 1 + has_cpu);
		reading->n_begins++;
		reading->depth++;
		if (reading->depth > reading->deepest)
			reading->deepest = reading->depth;
		break;
	case RECORD_END:
		reading_end(reading, record);
		break;
	case RECORD_RANGE_BEGIN:
		reading_log(reading, "range %s", reading_name(reading, record->slot));
		reading_category(reading, record, 2);
		reading->n_ranges++;
		break;
	case RECORD_RANGE_END:
		reading_log(reading, "range end\n");
		reading->n_range_ends++;
		break;
	case RECORD_METRIC:
		reading_log(reading, "metric %s %g\n", reading_name(reading, record->slot), extra->value);
		reading->n_metrics++;
		break;
	case RECORD_MARK:
		reading_log(reading, "mark %s", reading_name(reading, record->slot));
		reading_category(reading, record, 1);
		reading->n_marks++;
		break;
	case RECORD_THREAD:
		reading_log(reading, "thread\n");
		reading->depth = 0;
		reading->n_threads++;
		return;
	case RECORD_THREAD_END:
		reading_log(reading, "thread end\n");
		reading->depth = 0;
		reading->n_thread_ends++;
		break;
	case RECORD_PAD:
	case RECORD_KINDS:
		reading_fault(reading, "a kind that there is not");
		return;
	}
	if (record->t_ns < reading->latest_ns)
		reading_fault(reading, "time goes back");
	reading->latest_ns = record->t_ns;
}

static inline void reading_records(struct reading *reading, const struct span_record *records, uint64_t n)
{
	for (uint64_t i = 0; i < n;) {
		uint32_t count = span_record_count(&records[i]);
		if (count == 0 || count > n - i) {
			reading_fault(reading, "an event is cut");
			return;
		}
		reading_event(reading, &records[i]);
		i += count;
	}
}

static inline void reading_forget_names(struct reading *reading)
{
	for (size_t i = 0; i < SPAN_NAME_SLOTS; i++) {
		free(reading->names[i]);
		reading->names[i] = NULL;
	}
}

static inline void fake_open(struct fake_recorder *fake, uint32_t n_records, uint32_t flags)
{
	static int number;
	struct ring_address address = {.flags = flags, .n_records = n_records, .token = 0x1234567890abcdef};
	snprintf(address.name, sizeof(address.name), "wattle-test-%d-%d", getpid(), number++);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	memcpy(name.sun_path + 1, address.name, strlen(address.name));
	*fake = (struct fake_recorder){.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	assert_return_code(bind(fake->fd, (struct sockaddr *)&name,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.name))),
		errno);
	assert_return_code(listen(fake->fd, 4096), errno);
	assert_int_equal(ring_address_format(&address, fake->address, sizeof(fake->address)), 0);
	fake->rings = calloc(FAKE_RINGS_MAX, sizeof(*fake->rings));
	assert_non_null(fake->rings);
}

static inline int fake_receive(int fd, struct ring_hello *hello)
{
	char buffer[CMSG_SPACE(sizeof(int))];
	struct iovec text = {.iov_base = hello, .iov_len = sizeof(*hello)};
	struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = buffer,
		.msg_controllen = sizeof(buffer)};
	int memory_fd = -1;
	assert_int_equal(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), sizeof(*hello));
	memcpy(&memory_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return memory_fd;
}

// All clients that have connected so far.
static inline void fake_accept(struct fake_recorder *fake)
{
	for (;;) {
		int fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return;
		assert_true(fake->n < FAKE_RINGS_MAX);
		struct fake_ring *ring = &fake->rings[fake->n++];
		int memory_fd = fake_receive(fd, &ring->hello);
		assert_int_equal(fcntl(memory_fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		ring->bytes = ring_bytes(ring->hello.n_records);
		ring->header = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
		assert_true(ring->header != MAP_FAILED);
		close(memory_fd);
		close(fd);
	}
}

static inline void fake_read(struct fake_ring *ring)
{
	const struct span_record *records = (const void *)((const char *)ring->header + RING_HEADER_BYTES);
	uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
	uint64_t tail = atomic_load(&ring->header->tail), n = head - tail;
	if (n > ring->hello.n_records) {
		reading_fault(&ring->reading, "the ring was overrun");
		return;
	}
	struct span_record *copy = malloc((size_t)n * sizeof(*copy) + 1);
	assert_non_null(copy);
	for (uint64_t i = 0; i < n; i++)
		copy[i] = records[(tail + i) % ring->hello.n_records];
	reading_records(&ring->reading, copy, n);
	free(copy);
	atomic_store_explicit(&ring->header->tail, head, memory_order_release);
}

static inline void fake_read_all(struct fake_recorder *fake)
{
	fake_accept(fake);
	for (size_t i = 0; i < fake->n; i++)
		fake_read(&fake->rings[i]);
}

static inline struct fake_ring *fake_only(struct fake_recorder *fake)
{
	fake_read_all(fake);
	assert_int_equal(fake->n, 1);
	assert_null(fake->rings[0].reading.fault);
	return &fake->rings[0];
}

static inline void fake_close(struct fake_recorder *fake)
{
	for (size_t i = 0; i < fake->n; i++) {
		munmap(fake->rings[i].header, fake->rings[i].bytes);
		reading_forget_names(&fake->rings[i].reading);
	}
	free(fake->rings);
	close(fake->fd);
}
