#include "span/reader/reader.h"

#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

// Maximum number of times that connections are served per call; and rounds at the end, so that a program that never
// stops connecting can't delay it.
enum { DOOR_TURNS = 8, LAST_ROUNDS = 128 };

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
static void count_mapped(struct span_intake *intake, struct span_ring *ring, size_t n_records)
{
	int64_t read_bytes = (int64_t)(n_records * sizeof(struct span_record));
	int64_t left_bytes = (int64_t)(ring->n_records * sizeof(struct span_record)) - ring->mapped_bytes;
	int64_t more_bytes = read_bytes < left_bytes ? read_bytes : left_bytes;
	ring->mapped_bytes += more_bytes;
	intake->mapped_bytes += more_bytes;
}

/* Unmaps the pages just read if the budget is exceeded. They stay in the program's memory, and the next reading maps
 * new ones. */
static void keep_to_budget(struct span_intake *intake, struct span_ring *ring)
{
	if (intake->mapped_bytes <= INTAKE_RING_BYTES_MOST)
		return;
	unsigned char *records = (unsigned char *)ring->header + RING_HEADER_BYTES;
	(void)madvise(records, ring_bytes(ring->n_records) - RING_HEADER_BYTES, MADV_DONTNEED);
	intake->mapped_bytes -= ring->mapped_bytes;
	ring->mapped_bytes = 0;
}

/* Limits this reading to the records present now, so that a program that writes as fast as we read can't block us.
 * False: there are none. */
static bool begin_ring(struct span_intake *intake, struct span_ring *ring)
{
	if (ring->is_broken)
		return false;
	ring->goal = atomic_load_explicit(&ring->header->head, memory_order_acquire);
	uint64_t waiting = ring->goal - ring->tail;
	if (waiting > ring->n_records) { // head is out of range or went back: the contents can't be trusted
		ring->is_broken = true;
		intake->totals.n_broken++;
		return false;
	}
	if (waiting == 0)
		return false;
	int64_t passed_ns = intake->round_ns - intake->drained_ns;
	int64_t quarter_ns = (int64_t)((double)passed_ns * ring->n_records / 4 / (double)waiting);
	intake->due_ns = quarter_ns < intake->due_ns ? quarter_ns : intake->due_ns;
	return true;
}

static bool is_late(const struct span_intake *intake, int64_t end_ns)
{
	return env_now_ns(intake->env) >= end_ns;
}

// Returns whether the reading of this ring is complete, up to its head when the reading started. False: end_ns was
// reached and the next call continues. Each call reads at least something.
static bool drain_ring(struct span_intake *intake, struct span_ring *ring, int64_t end_ns)
{
	if (!ring->is_begun && !begin_ring(intake, ring))
		return true;
	int64_t now_ns = env_now_ns(intake->env); // read after head: the records were written before this time
	ring->is_begun = true;
	while (ring->is_begun && ring->tail != ring->goal) {
		uint64_t left = ring->goal - ring->tail;
		size_t n = left < INTAKE_SCRATCH_RECORDS ? (size_t)left : INTAKE_SCRATCH_RECORDS;
		copy_records(ring, n, intake->scratch);
		count_mapped(intake, ring, n);
		size_t used = span_decoder_feed(&ring->decoder, intake->scratch, n, now_ns, intake->round);
		ring->tail += used;
		atomic_store_explicit(&ring->header->tail, ring->tail, memory_order_release);
		ring->is_begun = used > 0; // otherwise the rest of an event is still missing
		if (is_late(intake, end_ns))
			break;
	}
	keep_to_budget(intake, ring);
	ring->is_begun = ring->is_begun && ring->tail != ring->goal;
	return !ring->is_begun;
}

static void settle_ranges(struct span_intake *intake)
{
	for (size_t i = 0; i < intake->n_processes; i++) {
		size_t dropped = span_ranges_settle(&intake->processes[i]->ranges, intake->round);
		intake->recording.n_open -= dropped;
		intake->recording.counts.strays += dropped;
	}
}

/* Reads every ring once, or until end_ns; the next call then continues. True: the round is complete. */
static bool read_round(struct span_intake *intake, int64_t end_ns)
{
	if (!intake->is_in_round) {
		intake->is_in_round = true;
		intake->round++;
		intake->drained_ns = intake->round_ns;
		intake->round_ns = env_now_ns(intake->env);
		intake->due_ns = INT64_MAX;
	}
	for (size_t i = 0; i < intake->n_rings; i++) {
		struct span_ring *ring = intake->rings[i];
		if (ring->round == intake->round)
			continue;
		if (!drain_ring(intake, ring, end_ns))
			return false;
		ring->round = intake->round;
		if (is_late(intake, end_ns))
			return false;
	}
	settle_ranges(intake);
	intake->is_in_round = false;
	return true;
}

static void free_ring(struct span_intake *intake, struct span_ring *ring)
{
	uint64_t lost = atomic_load_explicit(&ring->header->lost, memory_order_relaxed);
	intake->totals.lost = sum(intake->totals.lost, lost);
	span_decoder_finish(&ring->decoder);
	munmap(ring->header, ring_bytes(ring->n_records));
	intake->mapped_bytes -= ring->mapped_bytes;
	free(ring);
}

/* ---- processes ---- */

static struct span_process *find_process(const struct span_intake *intake, pid_t pid)
{
	for (size_t i = 0; i < intake->n_processes; i++)
		if (intake->processes[i]->pid == pid && !intake->processes[i]->is_replaced)
			return intake->processes[i];
	return NULL;
}

static bool has_ended(int pidfd)
{
	struct pollfd ends = {.fd = pidfd, .events = POLLIN};
	return pidfd < 0 || poll(&ends, 1, 0) == 1;
}

static void forget_process(struct span_intake *intake, struct span_process *process)
{
	for (size_t i = 0; i < intake->n_processes; i++)
		if (intake->processes[i] == process)
			intake->processes[i] = intake->processes[--intake->n_processes];
	if (process->pidfd >= 0)
		close(process->pidfd);
	span_ranges_finish(&process->ranges);
	free(process);
}

// Reads the remaining records in the rings of a process. False: end_ns was reached.
static bool read_rest(struct span_intake *intake, const struct span_process *process, int64_t end_ns)
{
	for (size_t i = 0; i < intake->n_rings; i++)
		if (intake->rings[i]->process == process && !drain_ring(intake, intake->rings[i], end_ns))
			return false;
	return true;
}

// The process or its program has ended and its rings are read: closes everything that is open.
static void end_process(struct span_intake *intake, struct span_process *process)
{
	size_t kept = 0;
	for (size_t i = 0; i < intake->n_rings; i++) {
		struct span_ring *ring = intake->rings[i];
		if (ring->process != process) {
			intake->rings[kept++] = ring;
			continue;
		}
		span_decoder_close(&ring->decoder, 0, process->how, process->over_ns);
		free_ring(intake, ring);
	}
	intake->n_rings = kept;
	span_decoder_close_ranges(&intake->recording, &process->ranges, process->how, process->over_ns);
	forget_process(intake, process);
}

static void set_over(struct span_intake *intake, struct span_process *process, enum span_close how)
{
	process->is_over = true;
	process->how = how;
	process->over_ns = env_now_ns(intake->env);
	process->n_accepted = intake->door.n_accepted;
}

/* Whether all connections that a process made before its end are accepted: no connection is waiting, or a full backlog
 * has been accepted since. So a program that connects constantly delays the end of others by one backlog. */
static bool may_be_ended(const struct span_intake *intake, const struct span_process *process, bool nobody_waits)
{
	uint64_t n_since = intake->door.n_accepted - process->n_accepted;
	return process->is_over && (nobody_waits || n_since > DOOR_BACKLOG);
}

// True: end_ns was reached and some are left.
static bool end_the_ended(struct span_intake *intake, int64_t end_ns, bool nobody_waits)
{
	for (size_t i = 0; i < intake->n_processes;) {
		struct span_process *process = intake->processes[i];
		if (!may_be_ended(intake, process, nobody_waits)) {
			i++;
			continue;
		}
		if (!read_rest(intake, process, end_ns))
			return true;
		end_process(intake, process); // the next process moves to index i
		if (is_late(intake, end_ns))
			return true;
	}
	return false;
}

static struct span_process *add_process(struct span_intake *intake, const struct door_guest *guest)
{
	struct span_process **larger = array_with_room(intake->processes, intake->n_processes,
		&intake->processes_capacity, sizeof(*larger), 8);
	if (larger == NULL)
		return NULL;
	intake->processes = larger;
	struct span_process *process = calloc(1, sizeof(*process));
	if (process == NULL)
		return NULL;
	*process = (struct span_process){.pid = guest->shown_pid, .pidfd = guest->pidfd, .image = guest->hello.image};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = process->pidfd};
	if (process->pidfd >= 0 && epoll_ctl(intake->epoll_fd, EPOLL_CTL_ADD, process->pidfd, &event) != 0) {
		free(process);
		return NULL;
	}
	intake->processes[intake->n_processes++] = process;
	return process;
}

/* The process that a ring belongs to. A new process takes over the guest's pidfd; otherwise it is closed. A known pid
 * may now belong to another process, or the process may have executed another program. An ended process alone shows
 * neither, because one of its threads may have sent this ring just before. */
static struct span_process *process_of(struct span_intake *intake, const struct door_guest *guest)
{
	struct span_process *process = find_process(intake, guest->shown_pid);
	bool is_over = process != NULL && has_ended(process->pidfd);
	if (process != NULL && (process->image != guest->hello.image || (is_over && !has_ended(guest->pidfd)))) {
		set_over(intake, process, is_over ? SPAN_AT_DEATH : SPAN_AT_EXEC);
		process->is_replaced = true; // its rings are read later
		process = NULL;
	}
	if (process == NULL) {
		process = add_process(intake, guest);
		if (process != NULL)
			return process;
	}
	if (guest->pidfd >= 0)
		close(guest->pidfd);
	return process;
}

/* ---- new rings ---- */

// Thread id in the rows: for the main thread the pid as seen here; for others the tid in the process's own namespace.
static int32_t tid_of(const struct ring_hello *hello, pid_t pid)
{
	return hello->tid == hello->pid ? pid : hello->tid;
}

static struct span_ring *new_ring(struct span_intake *intake)
{
	struct span_ring **larger = array_with_room(intake->rings, intake->n_rings, &intake->rings_capacity,
		sizeof(*larger), 16);
	if (larger == NULL)
		return NULL;
	intake->rings = larger;
	return calloc(1, sizeof(struct span_ring));
}

static int add_ring(struct span_intake *intake, const struct door_guest *guest)
{
	struct span_process *process = process_of(intake, guest);
	struct span_ring *ring = process != NULL ? new_ring(intake) : NULL;
	if (ring == NULL)
		return -ENOMEM; // a process without a ring does no harm
	int32_t pid = guest->shown_pid;
	ring->header = guest->header;
	ring->n_records = guest->hello.n_records;
	ring->process = process;
	span_decoder_init(&ring->decoder, &intake->recording, &process->ranges, pid, tid_of(&guest->hello, pid),
		intake->opened_ns);
	intake->rings[intake->n_rings++] = ring;
	intake->totals.n_rings++;
	return 0;
}

static pid_t admit(void *data, const struct door_guest *guest)
{
	struct span_intake *intake = data;
	// Smaller rings come from programs with a limit on file size.
	bool has_room = intake->n_rings < INTAKE_RINGS_MOST && guest->hello.n_records <= intake->options.n_records;
	pid_t pid = has_room ? intake->options.admit(intake->options.data, guest) : 0;
	intake->totals.n_refused += pid <= 0;
	return pid;
}

static void take(void *data, const struct door_guest *guest)
{
	struct span_intake *intake = data;
	if (add_ring(intake, guest) == 0)
		return;
	intake->totals.n_refused++;
	munmap(guest->header, ring_bytes(guest->hello.n_records));
}

/* ---- collector ---- */

int span_intake_open(struct span_intake *intake, const struct wattle_env *env,
	const struct span_intake_options *options, const struct span_sink *sink)
{
	*intake = (struct span_intake){.env = env,
		.options = *options,
		.door.fd = -1,
		.opened_ns = env_now_ns(env),
		.slice_ns = INTAKE_SLICE_NS,
		.epoll_fd = -1};
	intake->scratch = calloc_array(INTAKE_SCRATCH_RECORDS, sizeof(*intake->scratch));
	int r = intake->scratch != NULL ? span_recording_init(&intake->recording, sink) : -ENOMEM;
	if (r == 0) {
		intake->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		r = intake->epoll_fd >= 0
			? door_open(&intake->door, intake->epoll_fd, options->flags, options->n_records)
			: -errno;
	}
	if (r < 0)
		span_intake_close(intake);
	return r;
}

void span_intake_close(struct span_intake *intake)
{
	for (size_t i = 0; i < intake->n_rings; i++)
		free_ring(intake, intake->rings[i]);
	intake->n_rings = 0;
	while (intake->n_processes > 0)
		forget_process(intake, intake->processes[0]);
	free(intake->rings);
	free(intake->processes);
	free(intake->scratch);
	door_close(&intake->door);
	if (intake->epoll_fd >= 0)
		close(intake->epoll_fd);
	span_recording_finish(&intake->recording);
	*intake = (struct span_intake){.door.fd = -1, .epoll_fd = -1};
}

void span_intake_address(const struct span_intake *intake, char out[RING_ADDRESS_TEXT])
{
	if (intake->door.fd < 0 || ring_address_format(&intake->door.address, out, RING_ADDRESS_TEXT) < 0)
		out[0] = '\0';
}

static void note_the_ended(struct span_intake *intake)
{
	for (size_t i = 0; i < intake->n_processes; i++)
		if (!intake->processes[i]->is_over && has_ended(intake->processes[i]->pidfd))
			set_over(intake, intake->processes[i], SPAN_AT_DEATH);
}

static int64_t slice_end(const struct span_intake *intake)
{
	return env_now_ns(intake->env) + intake->slice_ns;
}

// Check ended processes before new connections: rings that a process sent before its end are then already waiting.
bool span_intake_serve(struct span_intake *intake)
{
	const struct door_hooks hooks = {admit, take, intake};
	int64_t end_ns = slice_end(intake), now_ns = end_ns - intake->slice_ns;
	note_the_ended(intake);
	bool may_be_more = true;
	for (int i = 0; i < DOOR_TURNS && may_be_more && now_ns < end_ns; i++) {
		may_be_more = door_serve(&intake->door, &hooks, now_ns);
		now_ns = env_now_ns(intake->env);
	}
	bool are_left = end_the_ended(intake, end_ns, !may_be_more);
	return may_be_more || are_left;
}

// Ends replaced processes here, because no event announces their end.
static bool end_the_replaced(struct span_intake *intake, int64_t end_ns)
{
	for (size_t i = 0; i < intake->n_processes;) {
		struct span_process *process = intake->processes[i];
		if (!process->is_replaced)
			i++;
		else if (read_rest(intake, process, end_ns))
			end_process(intake, process); // the next process moves to index i
		else
			return true;
	}
	return false;
}

int64_t span_intake_drain(struct span_intake *intake)
{
	int64_t end_ns = slice_end(intake);
	bool is_rest = intake->is_in_round;
	bool is_over = read_round(intake, end_ns);
	if (is_over && is_rest)
		is_over = read_round(intake, end_ns);
	if (!is_over || end_the_replaced(intake, end_ns))
		return 0;
	return intake->due_ns > 0 ? intake->due_ns : 1;
}

size_t span_intake_take_open(struct span_intake *intake, struct span_row *rows, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; n < room && i < intake->n_rings; i++)
		n += span_decoder_take_open(&intake->rings[i]->decoder, rows + n, room - n);
	for (size_t i = 0; n < room && i < intake->n_processes; i++)
		n += span_ranges_take_open(&intake->processes[i]->ranges, rows + n, room - n);
	return n;
}

// Each span takes two records, so half of the unread records count as lost.
static void count_unread(struct span_intake *intake)
{
	for (size_t i = 0; i < intake->n_rings; i++) {
		const struct span_ring *ring = intake->rings[i];
		uint64_t waiting = atomic_load_explicit(&ring->header->head, memory_order_relaxed) - ring->tail;
		intake->totals.n_unread += !ring->is_broken && waiting <= ring->n_records ? waiting : 0;
	}
	intake->totals.lost = sum(intake->totals.lost, intake->totals.n_unread / 2);
}

void span_intake_finish(struct span_intake *intake, bool (*is_enough)(void *data), void *data)
{
	if (intake->door.fd < 0)
		return;
	bool is_cut = false;
	for (int i = 0; i < LAST_ROUNDS && !is_cut && span_intake_serve(intake); i++)
		is_cut = is_enough != NULL && is_enough(data);
	// Completes a started round and reads one full round.
	for (int rounds = intake->is_in_round ? 2 : 1; rounds > 0 && !is_cut;) {
		rounds -= read_round(intake, slice_end(intake));
		is_cut = rounds > 0 && is_enough != NULL && is_enough(data);
	}
	if (is_cut)
		count_unread(intake);
	else
		end_the_replaced(intake, INT64_MAX);
	for (size_t i = 0; i < intake->n_rings; i++) {
		uint64_t lost = atomic_load_explicit(&intake->rings[i]->header->lost, memory_order_relaxed);
		intake->totals.lost = sum(intake->totals.lost, lost);
	}
}
