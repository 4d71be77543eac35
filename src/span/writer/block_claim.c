#include "span/writer/internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char zeros[4096];

// Replaces "%p" in the path by the pid. -ENAMETOOLONG.
static int expand(const char *path, char *out, size_t size)
{
	char digits[12];
	size_t n_digits = 0, n = 0;
	for (uint32_t pid = (uint32_t)getpid(); pid > 0; pid /= 10)
		digits[n_digits++] = (char)('0' + pid % 10);
	for (const char *at = path; *at != '\0'; at++) {
		bool is_pid = at[0] == '%' && at[1] == 'p';
		size_t more = is_pid ? n_digits : 1;
		if (n + more >= size)
			return -ENAMETOOLONG;
		if (!is_pid) {
			out[n++] = *at;
			continue;
		}
		for (size_t i = n_digits; i > 0; i--)
			out[n++] = digits[i - 1];
		at++;
	}
	out[n] = '\0';
	return 0;
}

/* Beyond RLIMIT_FSIZE the kernel sends a signal that ends the program. It is blocked here and removed, unless it was
 * pending before. */
static int reserve_by_call(int fd, off_t at, off_t bytes)
{
	sigset_t waiting, too_large;
	sigemptyset(&too_large);
	sigaddset(&too_large, SIGXFSZ);
	sigpending(&waiting);
	int r = fallocate(fd, 0, at, bytes) < 0 ? -errno : 0;
	if (r == -EFBIG && !sigismember(&waiting, SIGXFSZ))
		(void)sigtimedwait(&too_large, NULL, &(struct timespec){0});
	return r;
}

static bool has_no_such_call(int r)
{
	return r == -EOPNOTSUPP || r == -ENOSYS;
}

// The block belongs to this thread alone, so writing zeros is safe.
static int reserve_by_zeros(int fd, off_t at)
{
	if (!span_file_may_have((uint64_t)at + SPAN_BLOCK_BYTES))
		return -EFBIG;
	for (off_t done = 0; done < SPAN_BLOCK_BYTES; done += (off_t)sizeof(zeros)) {
		ssize_t n = pwrite(fd, zeros, sizeof(zeros), at + done);
		if (n != (ssize_t)sizeof(zeros))
			return n < 0 ? -errno : -ENOSPC;
	}
	return 0;
}

static int reserve_block(int fd, uint64_t index)
{
	off_t at = (off_t)(index * SPAN_BLOCK_BYTES);
	int r = reserve_by_call(fd, at, SPAN_BLOCK_BYTES);
	return has_no_such_call(r) ? reserve_by_zeros(fd, at) : r;
}

static const struct span_file_header own_header = {.magic = SPAN_FILE_MAGIC,
	.version = SPAN_FILE_VERSION,
	.block_bytes = SPAN_BLOCK_BYTES};
enum { FIXED_BYTES = offsetof(struct span_file_header, n_claimed) };

/* All processes write the same bytes, in any order: the fixed part is equal, and the counter starts as the file
 * system's zero. The last byte completes the block. */
static int write_first_block(int fd)
{
	int r = reserve_by_call(fd, 0, SPAN_BLOCK_BYTES);
	if (r < 0 && !has_no_such_call(r))
		return r;
	if (r < 0 && !span_file_may_have(SPAN_BLOCK_BYTES))
		return -EFBIG;
	if (pwrite(fd, &own_header, FIXED_BYTES, 0) != FIXED_BYTES)
		return -ENOSPC;
	return pwrite(fd, zeros, 1, SPAN_BLOCK_BYTES - 1) == 1 ? 0 : -ENOSPC;
}

/* A file with other data is not a span file and is left unchanged. */
static int check_first_block(int fd, const struct stat *stat)
{
	struct span_file_header header = {0};
	if (!S_ISREG(stat->st_mode))
		return -EINVAL;
	ssize_t n = pread(fd, &header, FIXED_BYTES, 0);
	if (n < 0)
		return -errno;
	if (n == FIXED_BYTES && memcmp(&header, &own_header, FIXED_BYTES) == 0 && stat->st_size >= SPAN_BLOCK_BYTES)
		return 0;
	bool is_new = n == 0 || (memcmp(&header, zeros, (size_t)n) == 0 && stat->st_size == SPAN_BLOCK_BYTES);
	bool is_half_made = n == FIXED_BYTES && memcmp(&header, &own_header, FIXED_BYTES) == 0;
	return is_new || is_half_made ? write_first_block(fd) : -EINVAL;
}

static int take_number(int fd, uint64_t *ret_index)
{
	struct span_file_header *header = mmap(NULL, sizeof(zeros), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return -errno;
	int r = madvise(header, sizeof(zeros), MADV_POPULATE_WRITE) < 0 && errno == EFAULT ? -ENOSPC : 0;
	if (r == 0)
		*ret_index = atomic_fetch_add(&header->n_claimed, 1) + 1;
	munmap(header, sizeof(zeros));
	// An implausible counter: the file is damaged.
	return r == 0 && *ret_index >= UINT32_MAX ? -EINVAL : r;
}

/* On copy-on-write file systems, even a reserved block may hit a full disk when touched. This must fail as a call and
 * not as a signal. */
static int map_block(int fd, uint64_t index, struct span_block_header **ret_header)
{
	void *map = mmap(NULL, SPAN_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		(off_t)(index * SPAN_BLOCK_BYTES));
	if (map == MAP_FAILED)
		return -errno;
	if (madvise(map, SPAN_BLOCK_BYTES, MADV_POPULATE_WRITE) < 0 && errno == EFAULT) {
		munmap(map, SPAN_BLOCK_BYTES);
		return -ENOSPC;
	}
	*ret_header = map;
	return 0;
}

static int claim_in(int fd, struct span_sink *sink, struct span_block_header **ret_header)
{
	struct stat stat;
	if (fstat(fd, &stat) < 0)
		return -errno;
	int r = check_first_block(fd, &stat);
	if (r < 0)
		return r;
	// After a full disk, retries the same block, unless the path is now another file.
	bool is_pending = sink->pending.index != 0 && sink->pending.device == stat.st_dev &&
		sink->pending.inode == stat.st_ino;
	if (!is_pending) {
		if ((r = take_number(fd, &sink->pending.index)) < 0)
			return r;
		sink->pending.device = stat.st_dev;
		sink->pending.inode = stat.st_ino;
	}
	r = reserve_block(fd, sink->pending.index);
	return r < 0 ? r : map_block(fd, sink->pending.index, ret_header);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Unique in this process. Starts with the time, so that a process uses other numbers after an exec.
static uint64_t new_stream(void)
{
	static _Atomic uint64_t latest;
	uint64_t none = 0;
	if (atomic_load(&latest) == 0)
		atomic_compare_exchange_strong(&latest, &none, (uint64_t)clock_ns(CLOCK_MONOTONIC));
	return atomic_fetch_add(&latest, 1) + 1;
}

static uint32_t count_open(const struct span_thread *thread)
{
	uint32_t n = 0;
	for (uint32_t depth = span_thread_depth(thread); depth > 0; depth--)
		n += !thread->dropped[depth - 1];
	return n;
}

static void fill(const struct span_thread *thread, struct span_block_header *header, const struct span_sink *sink)
{
	header->version = SPAN_FILE_VERSION;
	header->pid = getpid();
	header->tid = thread->tid;
	header->image = span_image();
	header->n_open = count_open(thread);
	header->stream = sink->stream;
	header->sequence = sink->sequence;
	memcpy(header->boot_id, span_source_boot_id(), sizeof(header->boot_id));
	header->anchor_mono_ns = clock_ns(CLOCK_MONOTONIC);
	header->anchor_wall_ns = clock_ns(CLOCK_REALTIME);
	atomic_thread_fence(memory_order_release);
	header->magic = SPAN_BLOCK_MAGIC;
}

int span_block_claim(struct span_thread *thread)
{
	int r = expand(span_source_path(), thread->path, sizeof(thread->path));
	if (r < 0)
		return r;
	int fd = open(thread->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (fd < 0)
		return -errno;
	struct span_block_header *header = NULL;
	r = claim_in(fd, &thread->sink, &header);
	close(fd);
	if (r < 0)
		return r;
	struct span_sink sink = {.kind = SINK_BLOCK,
		.is_announced = true,
		.map = header,
		.map_bytes = SPAN_BLOCK_BYTES};
	sink.stream = thread->sink.kind == SINK_BLOCK ? thread->sink.stream : new_stream();
	sink.sequence = thread->sink.kind == SINK_BLOCK ? thread->sink.sequence + 1 : 0;
	fill(thread, header, &sink);
	span_sink_attach(thread, &sink, (struct span_record *)(void *)((char *)header + SPAN_BLOCK_HEADER_BYTES),
		UINT64_MAX, (struct span_counters){&header->n_used, &header->lost, &header->unwound});
	return 0;
}
