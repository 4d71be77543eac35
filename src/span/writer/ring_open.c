#include "span/writer/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// From newer headers and kernels: memory that can never be executed, which some systems require.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int connect_to(const struct ring_address *address)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t length = strlen(address->name);
	memcpy(name.sun_path + 1, address->name, length);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

// The number requested by the recorder, or the largest one within the limit on file size. 0: not even the minimum.
static uint32_t choose_records(uint32_t n_records)
{
	while (n_records >= RING_RECORDS_MIN && !span_file_may_have(ring_bytes(n_records)))
		n_records /= 2;
	return n_records >= RING_RECORDS_MIN ? n_records : 0;
}

static int make_memory(uint32_t n_records)
{
	int fd = memfd_create("wattle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("wattle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)ring_bytes(n_records)) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

static int send_memory(int socket_fd, int memory_fd, const struct ring_hello *hello)
{
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int))];
	} control = {.buffer = ""};
	struct iovec text = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof(*hello)};
	struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &memory_fd, sizeof(int));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

// Touches the first page here, so that lack of memory is an error and not a signal.
static struct ring_header *map_memory(int fd, size_t bytes)
{
	struct ring_header *header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return NULL;
	if (madvise(header, RING_HEADER_BYTES, MADV_POPULATE_WRITE) < 0 && errno != EINVAL) {
		munmap(header, bytes);
		return NULL;
	}
	(void)madvise(header, bytes, MADV_DONTDUMP);
	return header;
}

/* Connects last: the recorder waits for the memory of few connections at a time, and a thread that waits for a CPU after
 * connecting would hold one of these places. */
static int deliver(int memory_fd, const struct ring_address *address, const struct ring_hello *hello)
{
	int socket_fd = connect_to(address);
	if (socket_fd < 0)
		return socket_fd;
	int r = send_memory(socket_fd, memory_fd, hello);
	close(socket_fd);
	return r;
}

static int open_ring(int memory_fd, const struct ring_address *address, int32_t tid, struct ring_header **ret_header)
{
	struct ring_hello hello = {.magic = RING_MAGIC,
		.version = RING_VERSION,
		.n_records = address->n_records,
		.image = span_image(),
		.pid = getpid(),
		.tid = tid,
		.token = address->token};
	size_t bytes = ring_bytes(address->n_records);
	struct ring_header *header = map_memory(memory_fd, bytes);
	if (header == NULL)
		return -ENOMEM;
	header->magic = RING_MAGIC;
	header->version = RING_VERSION;
	header->n_records = address->n_records;
	header->flags = address->flags;
	header->pid = hello.pid;
	header->tid = tid;
	header->image = hello.image;
	int r = deliver(memory_fd, address, &hello);
	if (r < 0)
		munmap(header, bytes);
	else
		*ret_header = header;
	return r;
}

int span_ring_open(struct span_thread *thread, const struct ring_address *address)
{
	struct ring_address own = *address;
	own.n_records = choose_records(address->n_records);
	if (own.n_records == 0)
		return -EFBIG;
	struct ring_header *header = NULL;
	int memory_fd = make_memory(own.n_records);
	int r = memory_fd < 0 ? memory_fd : open_ring(memory_fd, &own, thread->tid, &header);
	if (memory_fd >= 0)
		close(memory_fd);
	if (r < 0)
		return r;
	struct span_sink sink = {.kind = SINK_RING,
		.is_announced = true,
		.map = header,
		.map_bytes = ring_bytes(own.n_records)};
	sink.tail = &header->tail;
	thread->with_cpu_time = (address->flags & RING_CPU_TIME) != 0;
	thread->end_records = thread->with_cpu_time ? 2 : 1;
	span_sink_attach(thread, &sink, (struct span_record *)(void *)((char *)header + RING_HEADER_BYTES),
		own.n_records - 1, (struct span_counters){&header->head, &header->lost, &header->unwound});
	return 0;
}
