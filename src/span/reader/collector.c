#include "span/reader/reader.h"

#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

// Maximum number of times that connections are served per call; and rounds at the end, so that a program that never
// stops connecting can't delay it.
enum { LISTENER_ROUNDS = 8, LAST_ROUNDS = 128 };

/* ---- rings ---- */

static uint64_t sum(uint64_t a, uint64_t b)
{
	uint64_t total;
	return __builtin_add_overflow(a, b, &total) ? UINT64_MAX : total;
}

// Copies n records from position `tail` of the ring.
static void copy_records(const struct span_ring *ring, size_t n, struct span_record *out)
{
	const struct span_record *records = (const struct span_record *)((const unsigned char *)ring->header +
		RING_HEADER_BYTES);
	size_t at = (size_t)(ring->tail & (ring->n_records - 1));
	size_t to_edge = ring->n_records - at;
	size_t first = n < to_edge ? n : to_edge;
	memcpy(out, records + at, first * sizeof(*out));
	memcpy(out + first, records, (n - first) * sizeof(*out));
}

// Memory that was read counts as mapped, each page of a ring once.
static void count_mapped(struct span_collector *collector, struct span_ring *ring, size_t n_records)
{
	int64_t read_bytes = (int64_t)(n_records * sizeof(struct span_record));
	int64_t left_bytes = (int64_t)(ring->n_records * sizeof(struct span_record)) - ring->mapped_bytes;
	int64_t more_bytes = read_bytes < left_bytes ? read_bytes : left_bytes;
	ring->mapped_bytes += more_bytes;
	collector->mapped_bytes += more_bytes;
}

/* Unmaps the pages just read if the budget is exceeded. They stay in the program's memory, and the next reading maps
 * new ones. */
static void keep_to_budget(struct span_collector *collector, struct span_ring *ring)
{
	if (collector->mapped_bytes <= COLLECTOR_RING_BYTES_MAX)
		return;
	unsigned char *records = (unsigned char *)ring->header + RING_HEADER_BYTES;
	(void)madvise(records, ring_bytes(ring->n_records) - RING_HEADER_BYTES, MADV_DONTNEED);
	collector->mapped_bytes -= ring->mapped_bytes;
	ring->mapped_bytes = 0;
}

/* Limits this reading to the records present now, so that a program that writes as fast as we read can't block us.
 * False: there are none. */
static bool begin_ring(struct span_collector *collector, struct span_ring *ring)
{
	if (ring->is_broken)
		return false;
	ring->goal = atomic_load_explicit(&ring->header->head, memory_order_acquire);
	uint64_t waiting = ring->goal - ring->tail;
	if (waiting > ring->n_records) { // head is out of range or went back: the contents can't be trusted
		ring->is_broken = true;
		collector->totals.n_broken++;
		return false;
	}
	if (waiting == 0)
		return false;
	int64_t passed_ns = collector->round_ns - collector->drained_ns;
	int64_t quarter_ns = (int64_t)((double)passed_ns * ring->n_records / 4 / (double)waiting);
	collector->due_ns = quarter_ns < collector->due_ns ? quarter_ns : collector->due_ns;
	return true;
}

static bool is_late(const struct span_collector *collector, int64_t end_ns)
{
	return env_now_ns(collector->env) >= end_ns;
}

// Returns whether the reading of this ring is complete, up to its head when the reading started. False: end_ns was
// reached and the next call continues. Each call reads at least something.
static bool drain_ring(struct span_collector *collector, struct span_ring *ring, int64_t end_ns)
{
	if (!ring->is_started && !begin_ring(collector, ring))
		return true;
	int64_t now_ns = env_now_ns(collector->env); // read after head: the records were written before this time
	ring->is_started = true;
	while (ring->is_started && ring->tail != ring->goal) {
		uint64_t left = ring->goal - ring->tail;
		size_t n = left < COLLECTOR_SCRATCH_RECORDS ? (size_t)left : COLLECTOR_SCRATCH_RECORDS;
		copy_records(ring, n, collector->scratch);
		count_mapped(collector, ring, n);
		size_t used = span_decoder_feed(&ring->decoder, collector->scratch, n, now_ns, collector->round);
		ring->tail += used;
		atomic_store_explicit(&ring->header->tail, ring->tail, memory_order_release);
		ring->is_started = used > 0; // otherwise the rest of an event is still missing
		if (is_late(collector, end_ns))
			break;
	}
	keep_to_budget(collector, ring);
	ring->is_started = ring->is_started && ring->tail != ring->goal;
	return !ring->is_started;
}

static void end_range_round(struct span_collector *collector)
{
	for (size_t i = 0; i < collector->n_processes; i++) {
		size_t dropped = span_ranges_end_round(&collector->processes[i]->ranges, collector->round);
		collector->recording.n_open -= dropped;
		collector->recording.counts.stray_ends += dropped;
	}
}

/* Reads every ring once, or until end_ns; the next call then continues. True: the round is complete. */
static bool read_round(struct span_collector *collector, int64_t end_ns)
{
	if (!collector->is_in_round) {
		collector->is_in_round = true;
		collector->round++;
		collector->drained_ns = collector->round_ns;
		collector->round_ns = env_now_ns(collector->env);
		collector->due_ns = INT64_MAX;
	}
	for (size_t i = 0; i < collector->n_rings; i++) {
		struct span_ring *ring = collector->rings[i];
		if (ring->round == collector->round)
			continue;
		if (!drain_ring(collector, ring, end_ns))
			return false;
		ring->round = collector->round;
		if (is_late(collector, end_ns))
			return false;
	}
	end_range_round(collector);
	collector->is_in_round = false;
	return true;
}

static void free_ring(struct span_collector *collector, struct span_ring *ring)
{
	uint64_t lost = atomic_load_explicit(&ring->header->lost, memory_order_relaxed);
	collector->totals.lost = sum(collector->totals.lost, lost);
	span_decoder_finish(&ring->decoder);
	munmap(ring->header, ring_bytes(ring->n_records));
	collector->mapped_bytes -= ring->mapped_bytes;
	free(ring);
}

/* ---- processes ---- */

static struct span_process *find_process(const struct span_collector *collector, pid_t pid)
{
	for (size_t i = 0; i < collector->n_processes; i++)
		if (collector->processes[i]->pid == pid && !collector->processes[i]->is_replaced)
			return collector->processes[i];
	return NULL;
}

static bool has_ended(int pidfd)
{
	struct pollfd ends = {.fd = pidfd, .events = POLLIN};
	return pidfd < 0 || poll(&ends, 1, 0) == 1;
}

static void forget_process(struct span_collector *collector, struct span_process *process)
{
	for (size_t i = 0; i < collector->n_processes; i++)
		if (collector->processes[i] == process)
			collector->processes[i] = collector->processes[--collector->n_processes];
	if (process->pidfd >= 0)
		close(process->pidfd);
	span_ranges_finish(&process->ranges);
	free(process);
}

// Reads the remaining records in the rings of a process. False: end_ns was reached.
static bool read_rest(struct span_collector *collector, const struct span_process *process, int64_t end_ns)
{
	for (size_t i = 0; i < collector->n_rings; i++)
		if (collector->rings[i]->process == process && !drain_ring(collector, collector->rings[i], end_ns))
			return false;
	return true;
}

// The process or its program has ended and its rings are read: closes everything that is open.
static void end_process(struct span_collector *collector, struct span_process *process)
{
	size_t kept = 0;
	for (size_t i = 0; i < collector->n_rings; i++) {
		struct span_ring *ring = collector->rings[i];
		if (ring->process != process) {
			collector->rings[kept++] = ring;
			continue;
		}
		span_decoder_close(&ring->decoder, 0, process->how, process->over_ns);
		free_ring(collector, ring);
	}
	collector->n_rings = kept;
	span_decoder_close_ranges(&collector->recording, &process->ranges, process->how, process->over_ns);
	forget_process(collector, process);
}

static void set_over(struct span_collector *collector, struct span_process *process, enum span_close how)
{
	process->is_over = true;
	process->how = how;
	process->over_ns = env_now_ns(collector->env);
	process->n_accepted = collector->listener.n_accepted;
}

/* Whether all connections that a process made before its end are accepted: no connection is waiting, or a full backlog
 * has been accepted since. So a program that connects constantly delays the end of others by one backlog. */
static bool may_be_ended(const struct span_collector *collector, const struct span_process *process, bool nobody_waits)
{
	uint64_t n_since = collector->listener.n_accepted - process->n_accepted;
	return process->is_over && (nobody_waits || n_since > LISTENER_BACKLOG);
}

// True: end_ns was reached and some are left.
static bool end_the_ended(struct span_collector *collector, int64_t end_ns, bool nobody_waits)
{
	for (size_t i = 0; i < collector->n_processes;) {
		struct span_process *process = collector->processes[i];
		if (!may_be_ended(collector, process, nobody_waits)) {
			i++;
			continue;
		}
		if (!read_rest(collector, process, end_ns))
			return true;
		end_process(collector, process); // the next process moves to index i
		if (is_late(collector, end_ns))
			return true;
	}
	return false;
}

static struct span_process *add_process(struct span_collector *collector, const struct received_ring *received)
{
	struct span_process **larger = array_reserve(collector->processes, collector->n_processes,
		&collector->processes_capacity, sizeof(*larger), 8);
	if (larger == NULL)
		return NULL;
	collector->processes = larger;
	struct span_process *process = calloc(1, sizeof(*process));
	if (process == NULL)
		return NULL;
	*process = (struct span_process){.pid = received->shown_pid,
		.pidfd = received->pidfd,
		.image = received->hello.image};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = process->pidfd};
	if (process->pidfd >= 0 && epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, process->pidfd, &event) != 0) {
		free(process);
		return NULL;
	}
	collector->processes[collector->n_processes++] = process;
	return process;
}

/* The process that a ring belongs to. A new process takes over the guest's pidfd; otherwise it is closed. A known pid
 * may now belong to another process, or the process may have executed another program. An ended process alone shows
 * neither, because one of its threads may have sent this ring just before. */
static struct span_process *process_of(struct span_collector *collector, const struct received_ring *received)
{
	struct span_process *process = find_process(collector, received->shown_pid);
	bool is_over = process != NULL && has_ended(process->pidfd);
	if (process != NULL && (process->image != received->hello.image || (is_over && !has_ended(received->pidfd)))) {
		set_over(collector, process, is_over ? SPAN_AT_DEATH : SPAN_AT_EXEC);
		process->is_replaced = true; // the rings of the replaced process are read later
		process = NULL;
	}
	if (process == NULL) {
		process = add_process(collector, received);
		if (process != NULL)
			return process;
	}
	if (received->pidfd >= 0)
		close(received->pidfd);
	return process;
}

/* ---- new rings ---- */

// Thread id in the rows: for the main thread the pid as seen here; for others the tid in the process's own namespace.
static int32_t tid_of(const struct ring_hello *hello, pid_t pid)
{
	return hello->tid == hello->pid ? pid : hello->tid;
}

static struct span_ring *new_ring(struct span_collector *collector)
{
	struct span_ring **larger = array_reserve(collector->rings, collector->n_rings, &collector->rings_capacity,
		sizeof(*larger), 16);
	if (larger == NULL)
		return NULL;
	collector->rings = larger;
	return calloc(1, sizeof(struct span_ring));
}

static int add_ring(struct span_collector *collector, const struct received_ring *received)
{
	struct span_process *process = process_of(collector, received);
	struct span_ring *ring = process != NULL ? new_ring(collector) : NULL;
	if (ring == NULL)
		return -ENOMEM; // a process without a ring does no harm
	int32_t pid = received->shown_pid;
	ring->header = received->header;
	ring->n_records = received->hello.n_records;
	ring->process = process;
	span_decoder_init(&ring->decoder, &collector->recording, &process->ranges, pid, tid_of(&received->hello, pid),
		collector->opened_ns);
	collector->rings[collector->n_rings++] = ring;
	collector->totals.n_rings++;
	return 0;
}

static pid_t admit(void *data, const struct received_ring *received)
{
	struct span_collector *collector = data;
	// Smaller rings come from programs with a limit on file size.
	bool has_room = collector->n_rings < COLLECTOR_RINGS_MAX &&
		received->hello.n_records <= collector->options.n_records;
	pid_t pid = has_room ? collector->options.admit(collector->options.data, received) : 0;
	collector->totals.n_refused += pid <= 0;
	return pid;
}

static void take(void *data, const struct received_ring *received)
{
	struct span_collector *collector = data;
	if (add_ring(collector, received) == 0)
		return;
	collector->totals.n_refused++;
	munmap(received->header, ring_bytes(received->hello.n_records));
}

/* ---- collector ---- */

int span_collector_open(struct span_collector *collector, const struct wattle_env *env,
	const struct span_collector_options *options, const struct span_sink *sink)
{
	*collector = (struct span_collector){.env = env,
		.options = *options,
		.listener.fd = -1,
		.opened_ns = env_now_ns(env),
		.slice_ns = COLLECTOR_SLICE_NS,
		.epoll_fd = -1};
	collector->scratch = calloc_array(COLLECTOR_SCRATCH_RECORDS, sizeof(*collector->scratch));
	int r = collector->scratch != NULL ? span_recording_init(&collector->recording, sink) : -ENOMEM;
	if (r == 0) {
		collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		r = collector->epoll_fd >= 0
			? listener_open(&collector->listener, collector->epoll_fd, options->flags, options->n_records)
			: -errno;
	}
	if (r < 0)
		span_collector_close(collector);
	return r;
}

void span_collector_close(struct span_collector *collector)
{
	for (size_t i = 0; i < collector->n_rings; i++)
		free_ring(collector, collector->rings[i]);
	collector->n_rings = 0;
	while (collector->n_processes > 0)
		forget_process(collector, collector->processes[0]);
	free(collector->rings);
	free(collector->processes);
	free(collector->scratch);
	listener_close(&collector->listener);
	if (collector->epoll_fd >= 0)
		close(collector->epoll_fd);
	span_recording_finish(&collector->recording);
	*collector = (struct span_collector){.listener.fd = -1, .epoll_fd = -1};
}

void span_collector_address(const struct span_collector *collector, char out[RING_ADDRESS_TEXT])
{
	if (collector->listener.fd < 0 || ring_address_format(&collector->listener.address, out, RING_ADDRESS_TEXT) < 0)
		out[0] = '\0';
}

static void note_the_ended(struct span_collector *collector)
{
	for (size_t i = 0; i < collector->n_processes; i++)
		if (!collector->processes[i]->is_over && has_ended(collector->processes[i]->pidfd))
			set_over(collector, collector->processes[i], SPAN_AT_DEATH);
}

static int64_t slice_end(const struct span_collector *collector)
{
	return env_now_ns(collector->env) + collector->slice_ns;
}

// Check ended processes before new connections: rings that a process sent before its end are then already waiting.
bool span_collector_serve(struct span_collector *collector)
{
	const struct listener_callbacks hooks = {admit, take, collector};
	int64_t end_ns = slice_end(collector), now_ns = end_ns - collector->slice_ns;
	note_the_ended(collector);
	bool may_be_more = true;
	for (int i = 0; i < LISTENER_ROUNDS && may_be_more && now_ns < end_ns; i++) {
		may_be_more = listener_serve(&collector->listener, &hooks, now_ns);
		now_ns = env_now_ns(collector->env);
	}
	bool are_left = end_the_ended(collector, end_ns, !may_be_more);
	return may_be_more || are_left;
}

// Ends replaced processes here, because no event announces their end.
static bool end_the_replaced(struct span_collector *collector, int64_t end_ns)
{
	for (size_t i = 0; i < collector->n_processes;) {
		struct span_process *process = collector->processes[i];
		if (!process->is_replaced)
			i++;
		else if (read_rest(collector, process, end_ns))
			end_process(collector, process); // the next process moves to index i
		else
			return true;
	}
	return false;
}

int64_t span_collector_drain(struct span_collector *collector)
{
	int64_t end_ns = slice_end(collector);
	bool is_rest = collector->is_in_round;
	bool is_over = read_round(collector, end_ns);
	if (is_over && is_rest)
		is_over = read_round(collector, end_ns);
	if (!is_over || end_the_replaced(collector, end_ns))
		return 0;
	return collector->due_ns > 0 ? collector->due_ns : 1;
}

size_t span_collector_take_open(struct span_collector *collector, struct span_row *rows, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; n < room && i < collector->n_rings; i++)
		n += span_decoder_take_open(&collector->rings[i]->decoder, rows + n, room - n);
	for (size_t i = 0; n < room && i < collector->n_processes; i++)
		n += span_ranges_take_open(&collector->processes[i]->ranges, rows + n, room - n);
	return n;
}

// Each span takes two records, so half of the unread records count as lost.
static void count_unread(struct span_collector *collector)
{
	for (size_t i = 0; i < collector->n_rings; i++) {
		const struct span_ring *ring = collector->rings[i];
		uint64_t waiting = atomic_load_explicit(&ring->header->head, memory_order_relaxed) - ring->tail;
		collector->totals.n_unread += !ring->is_broken && waiting <= ring->n_records ? waiting : 0;
	}
	collector->totals.lost = sum(collector->totals.lost, collector->totals.n_unread / 2);
}

void span_collector_finish(struct span_collector *collector, bool (*is_enough)(void *data), void *data)
{
	if (collector->listener.fd < 0)
		return;
	bool is_cut = false;
	for (int i = 0; i < LAST_ROUNDS && !is_cut && span_collector_serve(collector); i++)
		is_cut = is_enough != NULL && is_enough(data);
	// Completes a started round and reads one full round.
	for (int rounds = collector->is_in_round ? 2 : 1; rounds > 0 && !is_cut;) {
		rounds -= read_round(collector, slice_end(collector));
		is_cut = rounds > 0 && is_enough != NULL && is_enough(data);
	}
	if (is_cut)
		count_unread(collector);
	else
		end_the_replaced(collector, INT64_MAX);
	for (size_t i = 0; i < collector->n_rings; i++) {
		uint64_t lost = atomic_load_explicit(&collector->rings[i]->header->lost, memory_order_relaxed);
		collector->totals.lost = sum(collector->totals.lost, lost);
	}
}
