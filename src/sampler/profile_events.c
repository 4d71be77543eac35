#include "sampler/recorder.h"

#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

/* Memory of all rings, and of one. An unprivileged user may lock 516 KiB for each CPU (kernel.perf_event_mlock_kb). */
enum { RINGS_BYTES_MAX = 32 << 20, RING_BYTES_MAX = 512 << 10, RING_BYTES_MIN = 32 << 10 };
// Records that wait for those of other CPUs: more than all rings hold is not needed.
enum { WAITING_BYTES_MAX = 2 * RINGS_BYTES_MAX };

/* ---- opening ---- */

static const struct candidate {
	const char *name, *user_name; // user_name: without the kernel's part
	uint32_t type;
	uint64_t config;
} candidates[] = {
	{"cycles", "cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-clock", "cpu-clock:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK}, // virtual machines have no other
};

static int open_event(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static struct perf_event_attr attr_of(const struct candidate *candidate, const struct profile_options *options,
	bool held)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = candidate->type,
		.config = candidate->config,
		.freq = 1,
		.sample_freq = (uint64_t)options->hz,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
			(options->call_graph ? PERF_SAMPLE_CALLCHAIN : 0),
		.disabled = held,
		.enable_on_exec = held,
		.inherit = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.build_id = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_callchain_kernel = 1, // the kernel is one frame
		.exclude_hv = 1,
		.watermark = 1,
	};
}

/* The first event that this kernel and this user's permissions allow: with the kernel's part or without it, with build IDs
 * (Linux 5.12) or without them. Returns 0 or the error of the last attempt. */
static int choose(struct profile_events *events, const struct profile_options *options, pid_t tid, bool held)
{
	int r = -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++)
		for (int variant = 0; variant < 4; variant++) {
			bool is_user = (variant & 1) != 0;
			events->attr = attr_of(&candidates[i], options, held);
			events->attr.exclude_kernel = is_user;
			events->attr.build_id = (variant & 2) == 0;
			events->name = is_user ? candidates[i].user_name : candidates[i].name;
			int fd = open_event(&events->attr, tid, -1);
			if (fd >= 0)
				close(fd);
			if (fd >= 0)
				return 0;
			r = fd;
		}
	return r;
}

static void read_setting(const char *name, char *out, size_t size)
{
	char path[80];
	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	ssize_t n = file_read_line_in(AT_FDCWD, path, out, size);
	if (n < 0)
		text_copy(out, size, "unknown");
}

static int refuse(int code, const struct profile_options *options, struct wattle_error *reterr)
{
	char setting[32];
	if (code == -EACCES || code == -EPERM) {
		read_setting("perf_event_paranoid", setting, sizeof(setting));
		return error_set(reterr, code,
			"--profile: perf_event_open: %s (kernel.perf_event_paranoid is %s); allow it with "
			"`sysctl kernel.perf_event_paranoid=2`, or run as root",
			strerror(-code), setting);
	}
	if (code == -EINVAL) {
		read_setting("perf_event_max_sample_rate", setting, sizeof(setting));
		return error_set(reterr, code,
			"--profile=%lld: perf_event_open: %s; kernel.perf_event_max_sample_rate is %s: give a lower rate",
			(long long)options->hz, strerror(-code), setting);
	}
	return error_set(reterr, code,
		"--profile: perf_event_open: %s; this kernel can't sample the program: run without it",
		strerror(-code));
}

static size_t bytes_of_ring(int n_cpus)
{
	size_t bytes = RING_BYTES_MAX, page = (size_t)sysconf(_SC_PAGESIZE);
	while (bytes > RING_BYTES_MIN && bytes * (size_t)n_cpus > RINGS_BYTES_MAX)
		bytes /= 2;
	return bytes > page ? bytes : page;
}

static int keep_fd(struct profile_events *events, int fd)
{
	int *larger = array_reserve(events->fds, events->n_fds, &events->fds_capacity, sizeof(*larger), 16);
	if (larger == NULL) {
		close(fd);
		return -ENOMEM;
	}
	events->fds = larger;
	events->fds[events->n_fds++] = fd;
	return 0;
}

static int map_ring(struct profile_events *events, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct profile_ring *ring = &events->rings[events->n_rings];
	void *pages = mmap(NULL, page + events->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return -errno;
	*ring = (struct profile_ring){fd, pages};
	events->n_rings++;
	// Edge-triggered: a ring whose threads have all ended stays in the state "hung up".
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
	return epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

// The first thread's events own the rings, into which those of further threads write.
static int open_on_cpus(struct profile_events *events, pid_t tid, int n_cpus)
{
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		int fd = open_event(&events->attr, tid, cpu);
		if (fd == -ENODEV || fd == -EINVAL) // offline
			continue;
		int r = fd < 0 ? fd : keep_fd(events, fd);
		if (r == 0)
			r = map_ring(events, fd);
		if (r < 0)
			return r;
	}
	return events->n_rings > 0 ? 0 : -ENODEV;
}

int profile_events_open(struct profile_events *events, const struct profile_options *options, pid_t tid, bool held,
	struct wattle_error *reterr)
{
	int n_cpus = get_nprocs_conf();
	*events = (struct profile_events){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.ring_bytes = bytes_of_ring(n_cpus)};
	events->rings = calloc_array((size_t)n_cpus, sizeof(*events->rings));
	if (events->rings == NULL || events->epoll_fd < 0)
		return error_set(reterr, -ENOMEM, "--profile: out of memory");
	int r = choose(events, options, tid, held);
	events->attr.wakeup_watermark = (uint32_t)events->ring_bytes / 4;
	if (r == 0)
		r = open_on_cpus(events, tid, n_cpus);
	return r < 0 ? refuse(r, options, reterr) : 0;
}

int profile_events_add(struct profile_events *events, pid_t tid)
{
	int n_cpus = get_nprocs_conf();
	size_t ring = 0;
	for (int cpu = 0; cpu < n_cpus && ring < events->n_rings; cpu++) {
		int fd = open_event(&events->attr, tid, cpu);
		if (fd == -ENODEV || fd == -EINVAL)
			continue;
		int r = fd < 0 ? fd : keep_fd(events, fd);
		if (r == 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, events->rings[ring++].fd) != 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

void profile_events_close(struct profile_events *events)
{
	for (size_t i = 0; i < events->n_rings; i++)
		munmap(events->rings[i].pages, (size_t)sysconf(_SC_PAGESIZE) + events->ring_bytes);
	for (size_t i = 0; i < events->n_fds; i++)
		close(events->fds[i]);
	if (events->epoll_fd >= 0)
		close(events->epoll_fd);
	free(events->rings);
	free(events->fds);
	free(events->bytes);
	free(events->records);
	*events = (struct profile_events){.epoll_fd = -1};
}

/* ---- records ---- */

// The fields of a record, read one after the other; reading past the end sets `is_short`.
struct reader {
	const unsigned char *at;
	size_t left;
	bool is_short;
};

static void take(struct reader *reader, void *out, size_t size)
{
	memset(out, 0, size);
	reader->is_short |= size > reader->left;
	if (reader->is_short)
		return;
	memcpy(out, reader->at, size);
	reader->at += size;
	reader->left -= size;
}

static uint32_t take_u32(struct reader *reader)
{
	uint32_t value;
	take(reader, &value, sizeof(value));
	return value;
}

static uint64_t take_u64(struct reader *reader)
{
	uint64_t value;
	take(reader, &value, sizeof(value));
	return value;
}

static struct perf_event_header header_at(const unsigned char *record)
{
	struct perf_event_header header;
	memcpy(&header, record, sizeof(header));
	return header;
}

static struct reader reader_of(const unsigned char *record)
{
	return (struct reader){record + sizeof(struct perf_event_header),
		header_at(record).size - sizeof(struct perf_event_header), false};
}

// Of a sample: its third field. Of any other record: its last one (sample_id_all: pid, tid, time).
static int64_t time_of(const unsigned char *record)
{
	struct reader reader = reader_of(record);
	size_t at = header_at(record).type == PERF_RECORD_SAMPLE ? 2 * sizeof(uint64_t)
		: reader.left >= sizeof(uint64_t)                ? reader.left - sizeof(uint64_t)
								 : 0;
	uint64_t t_ns = 0;
	if (at + sizeof(t_ns) <= reader.left)
		memcpy(&t_ns, reader.at + at, sizeof(t_ns));
	return t_ns <= INT64_MAX ? (int64_t)t_ns : 0;
}

static void pass_sample(const struct profile_events *events, const unsigned char *record,
	const struct profile_sink *sink)
{
	uint64_t addresses[PERF_MAX_STACK_DEPTH];
	size_t n = 0;
	struct reader reader = reader_of(record);
	uint64_t address = take_u64(&reader);
	pid_t pid = (pid_t)take_u32(&reader), tid = (pid_t)take_u32(&reader);
	int64_t t_ns = (int64_t)take_u64(&reader);
	uint64_t period = take_u64(&reader);
	bool has_chain = (events->attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
	uint64_t n_chain = has_chain ? take_u64(&reader) : 0;
	bool in_kernel = (header_at(record).misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
	for (uint64_t i = 0; i < n_chain && !reader.is_short && n < ARRAY_SIZE(addresses); i++) {
		uint64_t caller = take_u64(&reader);
		if (caller < (uint64_t)PERF_CONTEXT_MAX) // markers are at the top of the address space
			addresses[n++] = caller;
	}
	if (!has_chain && !in_kernel)
		addresses[n++] = address;
	if (!reader.is_short)
		sink->sample(sink->data, t_ns, pid, tid, period, in_kernel, addresses, n);
}

static void pass_map(const unsigned char *record, const struct profile_sink *sink)
{
	struct store_profile_module module = {.inode = VALUE_MISSING,
		.size_bytes = VALUE_MISSING,
		.mtime_ns = VALUE_MISSING};
	struct reader reader = reader_of(record);
	pid_t pid = (pid_t)take_u32(&reader);
	(void)take_u32(&reader); // tid
	uint64_t begin = take_u64(&reader), size = take_u64(&reader), offset = take_u64(&reader);
	unsigned char identity[24];
	take(&reader, identity, sizeof(identity));
	(void)take_u64(&reader); // protection and flags
	if ((header_at(record).misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
		module.build_id_size = identity[0] < PROFILE_BUILD_ID_SIZE ? identity[0] : PROFILE_BUILD_ID_SIZE;
		memcpy(module.build_id, identity + 4, module.build_id_size);
	} else {
		uint64_t inode;
		memcpy(&inode, identity + 8, sizeof(inode));
		module.inode = inode != 0 && inode <= INT64_MAX ? (int64_t)inode : VALUE_MISSING;
	}
	module.path = (const char *)reader.at;
	bool is_text = !reader.is_short && memchr(reader.at, '\0', reader.left) != NULL;
	if (is_text)
		sink->map(sink->data, pid, begin, size, offset, &module);
}

static void pass_task(const unsigned char *record, const struct profile_sink *sink)
{
	struct reader reader = reader_of(record);
	pid_t pid = (pid_t)take_u32(&reader), ppid = (pid_t)take_u32(&reader);
	if (reader.is_short)
		return;
	if (header_at(record).type == PERF_RECORD_FORK)
		sink->fork(sink->data, pid, ppid);
	else
		sink->exit(sink->data, pid);
}

static void pass(struct profile_events *events, const unsigned char *record, const struct profile_sink *sink)
{
	struct perf_event_header header = header_at(record);
	struct reader reader = reader_of(record);
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		pass_sample(events, record, sink);
		break;
	case PERF_RECORD_MMAP2:
		pass_map(record, sink);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		pass_task(record, sink);
		break;
	case PERF_RECORD_COMM:
		if ((header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
			sink->exec(sink->data, (pid_t)take_u32(&reader));
		break;
	case PERF_RECORD_LOST:
		(void)take_u64(&reader); // id of the event
		events->n_lost += (int64_t)(take_u64(&reader) & INT32_MAX);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		events->n_lost += (int64_t)(take_u64(&reader) & INT32_MAX);
		break;
	default:
		break;
	}
}

/* ---- reading ---- */

// Room for a record of this size; NULL: none, and the record is lost.
static unsigned char *add_record(struct profile_events *events, size_t size)
{
	struct profile_record *records = array_reserve(events->records, events->n_records, &events->records_capacity,
		sizeof(*records), 1024);
	if (records == NULL)
		return NULL;
	events->records = records;
	if (events->size + size > events->capacity) {
		size_t capacity = 2 * (events->size + size);
		unsigned char *larger = capacity <= WAITING_BYTES_MAX ? realloc(events->bytes, capacity) : NULL;
		if (larger == NULL)
			return NULL;
		events->bytes = larger;
		events->capacity = capacity;
	}
	events->records[events->n_records++] = (struct profile_record){.at = events->size};
	events->size += size;
	return events->bytes + events->size - size;
}

static void copy_from(const struct profile_events *events, const unsigned char *ring, uint64_t at, void *out,
	size_t size)
{
	size_t begin = at % events->ring_bytes, first = events->ring_bytes - begin;
	first = first < size ? first : size;
	memcpy(out, ring + begin, first);
	memcpy((unsigned char *)out + first, ring, size - first);
}

static void read_ring(struct profile_events *events, const struct profile_ring *ring)
{
	struct perf_event_mmap_page *page = ring->pages;
	const unsigned char *data = (const unsigned char *)ring->pages + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		copy_from(events, data, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break; // not what a kernel writes
		unsigned char *record = add_record(events, header.size);
		events->n_lost += record == NULL;
		if (record != NULL) {
			copy_from(events, data, tail, record, header.size);
			events->records[events->n_records - 1].t_ns = time_of(record);
		}
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct profile_record *x = a, *y = b;
	if (x->t_ns != y->t_ns)
		return x->t_ns > y->t_ns ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at); // of one ring in its order
}

// Moves the records from `first` on to the begin.
static void keep_rest(struct profile_events *events, size_t first)
{
	size_t n = events->n_records - first, size = 0;
	unsigned char *bytes = NULL;
	for (size_t i = 0; i < n; i++)
		size += header_at(events->bytes + events->records[first + i].at).size;
	if (size > 0 && (bytes = malloc(size)) == NULL) {
		events->n_lost += (int64_t)n;
		n = 0;
	}
	memmove(events->records, events->records + first, n * sizeof(*events->records));
	events->n_records = n;
	events->size = 0;
	for (size_t i = 0; i < n; i++) {
		struct profile_record *record = &events->records[i];
		size_t one = header_at(events->bytes + record->at).size;
		memcpy(bytes + events->size, events->bytes + record->at, one);
		record->at = events->size;
		events->size += one;
	}
	if (events->size > 0)
		memcpy(events->bytes, bytes, events->size);
	free(bytes);
}

void profile_events_read(struct profile_events *events, int64_t until_ns, const struct profile_sink *sink)
{
	struct epoll_event ready[64];
	while (epoll_wait(events->epoll_fd, ready, ARRAY_SIZE(ready), 0) == ARRAY_SIZE(ready))
		;
	for (size_t i = 0; i < events->n_rings; i++)
		read_ring(events, &events->rings[i]);
	if (events->n_records == 0)
		return;
	qsort(events->records, events->n_records, sizeof(*events->records), by_time);
	size_t n = 0;
	while (n < events->n_records && events->records[n].t_ns < until_ns)
		pass(events, events->bytes + events->records[n++].at, sink);
	keep_rest(events, n);
}
