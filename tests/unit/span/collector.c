// Rings with more records than one call may read: a call ends with its time slice, and memory stays within the budget.
#include "span/reader/reader.h"

#include "rows.h"

#include <sys/wait.h>

#include "../../fakes/ring_client.h"

enum { SMALL = RING_RECORDS_MIN };

struct fixture {
	struct span_collector collector;
	struct wattle_env env;
	int64_t now_ns, step_ns; // each clock reading advances it
	size_t n_spans;
	bool is_enough;
};

static int64_t moving_clock(void *data)
{
	struct fixture *f = data;
	return f->now_ns += f->step_ns;
}

static void on_span(void *data, const struct span_row *row)
{
	((struct fixture *)data)->n_spans++;
}

static void on_metric(void *data, const struct span_metric_row *row)
{
}

static void on_mark(void *data, const struct span_mark_row *row)
{
}

// A connection whose message is sent while another ring is received.
static struct {
	int connection, ring_fd;
	struct ring_hello hello;
} late = {-1, -1, {0}};

static pid_t admit_all(void *data, const struct received_ring *received)
{
	if (late.connection >= 0) {
		assert_true(ring_client_send(late.connection, &late.hello, sizeof(late.hello), late.ring_fd, 1));
		close(late.connection);
		close(late.ring_fd);
		late.connection = -1;
	}
	return received->pid;
}

static bool is_enough(void *data)
{
	return ((struct fixture *)data)->is_enough;
}

static void setup(struct fixture *f, uint32_t n_records)
{
	char address[RING_ADDRESS_TEXT];
	*f = (struct fixture){.now_ns = 1000, .step_ns = 1};
	f->env.clock = (struct env_clock){.monotonic_ns = moving_clock, .data = f};
	const struct span_collector_options options = {.n_records = n_records, .admit = admit_all};
	const struct span_sink sink = {on_span, on_metric, on_mark, f};
	assert_int_equal(span_collector_open(&f->collector, &f->env, &options, &sink), 0);
	span_collector_address(&f->collector, address);
	assert_int_equal(setenv("WATTLE_RING", address, 1), 0);
}

static void teardown(struct fixture *f)
{
	unsetenv("WATTLE_RING");
	span_collector_close(&f->collector);
}

// A ring of this process, full of spans.
static struct ring_client full_ring(struct fixture *f, uint32_t n_records)
{
	struct ring_client client;
	assert_true(ring_client_open_sized(&client, 9, n_records));
	const struct span_record begin = {.t_ns = 1, .kind = RECORD_BEGIN},
				 end = {.t_ns = 2, .kind = RECORD_END, .n = 1};
	while (ring_client_has_room(&client, 2)) {
		ring_client_put(&client, &begin);
		ring_client_put(&client, &end);
	}
	ring_client_publish(&client);
	while (span_collector_serve(&f->collector))
		;
	return client;
}

static void release(const struct ring_client *client, uint32_t n_records)
{
	munmap(client->header, ring_bytes(n_records));
}

static void a_drain_ends_with_its_slice(void **state)
{
	enum { RECORDS = 131072 };
	struct fixture f;
	setup(&f, RECORDS);
	struct ring_client first = full_ring(&f, 0), second = full_ring(&f, 0);
	f.step_ns = COLLECTOR_SLICE_NS / 4;
	size_t before = 0;
	int n_calls = 0;
	for (; span_collector_drain(&f.collector) == 0; n_calls++) {
		assert_true(f.n_spans > before); // each ring gets its turn
		assert_true(f.n_spans - before <= 4 * COLLECTOR_SCRATCH_RECORDS / 2);
		before = f.n_spans;
	}
	assert_int_equal(f.n_spans, RECORDS);
	assert_true(n_calls > 10);
	release(&first, RECORDS);
	release(&second, RECORDS);
	teardown(&f);
}

static void many_small_rings(void **state)
{
	enum { RINGS = 20 };
	struct fixture f;
	struct ring_client clients[RINGS];
	setup(&f, SMALL);
	for (size_t i = 0; i < RINGS; i++)
		clients[i] = full_ring(&f, 0);
	f.step_ns = COLLECTOR_SLICE_NS / 24; // three clock readings for each ring
	for (size_t before = 0; f.n_spans < RINGS * SMALL / 2; before = f.n_spans) {
		span_collector_drain(&f.collector);
		assert_true(f.n_spans > before && f.n_spans - before <= 10 * SMALL / 2);
	}
	for (size_t i = 0; i < RINGS; i++)
		release(&clients[i], SMALL);
	teardown(&f);
}

static void other_sizes_are_refused(void **state)
{
	struct fixture f;
	setup(&f, 2 * SMALL);
	struct ring_client large = full_ring(&f, 4 * SMALL), asked = full_ring(&f, 0), small = full_ring(&f, SMALL);
	assert_int_equal(f.collector.totals.n_rings, 2);
	assert_int_equal(f.collector.totals.n_refused, 1);
	release(&large, 4 * SMALL);
	release(&asked, 2 * SMALL);
	release(&small, SMALL);
	teardown(&f);
}

static void memory_stays_within_the_budget(void **state)
{
	enum { RECORDS = 1 << 20, RINGS = 12 }; // 16 MiB each
	struct fixture f;
	setup(&f, RECORDS);
	for (int i = 0; i < RINGS; i++) {
		struct ring_client client = full_ring(&f, 0);
		release(&client, RECORDS); // the recorder's mapping keeps it
		while (span_collector_drain(&f.collector) == 0)
			;
		assert_true(f.collector.mapped_bytes <= COLLECTOR_RING_BYTES_MAX);
	}
	assert_int_equal(f.n_spans, (size_t)RINGS * RECORDS / 2);
	assert_true(f.collector.mapped_bytes > COLLECTOR_RING_BYTES_MAX / 2);
	teardown(&f);
	assert_int_equal(f.collector.mapped_bytes, 0);
}

static void what_is_not_read_in_time_is_lost(void **state)
{
	enum { RECORDS = 131072 };
	struct fixture f;
	setup(&f, RECORDS);
	struct ring_client client = full_ring(&f, 0);
	f.step_ns = COLLECTOR_SLICE_NS;
	f.is_enough = true;
	span_collector_finish(&f.collector, is_enough, &f);
	assert_true(f.n_spans > 0 && f.n_spans < RECORDS / 2);
	assert_int_equal(f.collector.totals.lost, RECORDS / 2 - f.n_spans);
	assert_int_equal(f.collector.totals.n_unread, 2 * f.collector.totals.lost);
	release(&client, RECORDS);
	teardown(&f);
}

static void the_end_reads_all(void **state)
{
	enum { RECORDS = 131072 };
	struct fixture f;
	setup(&f, RECORDS);
	struct ring_client client = full_ring(&f, 0);
	f.step_ns = COLLECTOR_SLICE_NS;
	span_collector_finish(&f.collector, is_enough, &f);
	assert_int_equal(f.n_spans, RECORDS / 2);
	assert_int_equal(f.collector.totals.lost, 0);
	release(&client, RECORDS);
	teardown(&f);
}

/* ---- ended processes ---- */

// Sends a ring and exits. Returns after the exit, without waiting for the ring to be read.
static void process_with_a_ring(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct ring_client client;
		_exit(ring_client_open_sized(&client, 9, 0) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void connect_silently(int n)
{
	unsigned n_records;
	uint64_t token;
	char name[64];
	assert_true(ring_client_address(&n_records, &token, name));
	for (int i = 0; i < n; i++) {
		int connection = ring_client_connect(name);
		assert_true(connection >= 0);
		close(connection);
	}
}

static void constant_connections_delay_no_end(void **state)
{
	enum { A_CALL = 8 * 8, CALLS = LISTENER_BACKLOG / A_CALL + 4 };
	struct fixture f;
	setup(&f, SMALL);
	process_with_a_ring();
	connect_silently(2 * A_CALL);
	assert_true(span_collector_serve(&f.collector));
	assert_int_equal(f.collector.n_processes, 1);
	for (int i = 0; i < CALLS; i++) {
		connect_silently(A_CALL);
		assert_true(span_collector_serve(&f.collector));
	}
	assert_int_equal(f.collector.n_processes, 0);
	assert_int_equal(f.collector.n_rings, 0);
	teardown(&f);
}

static void ring_behind_others_belongs_to_its_process(void **state)
{
	enum { WAITING = 1000 };
	struct fixture f;
	setup(&f, SMALL);
	int begin[2];
	assert_int_equal(pipe(begin), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct ring_client client;
		char c;
		bool is_good = ring_client_open_sized(&client, 9, 0) && read(begin[0], &c, 1) == 1 &&
			ring_client_open_sized(&client, 9, 0);
		_exit(is_good ? 0 : 1);
	}
	while (f.collector.n_rings == 0)
		(void)span_collector_serve(&f.collector);
	connect_silently(WAITING);
	int status;
	assert_int_equal(write(begin[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	while (span_collector_serve(&f.collector))
		assert_true(f.collector.n_processes == 1 || f.collector.totals.n_rings == 2);
	assert_int_equal(f.collector.totals.n_rings, 2);
	assert_int_equal(f.collector.n_processes, 0);
	close(begin[0]);
	close(begin[1]);
	teardown(&f);
}

static void message_that_arrives_before_the_connection_is_closed(void **state)
{
	struct fixture f;
	struct ring_client client;
	unsigned n_records;
	char name[64];
	int silent[LISTENER_SILENT_MAX];
	setup(&f, SMALL);
	late.hello = (struct ring_hello){.magic = RING_MAGIC, .version = RING_VERSION, .n_records = SMALL, .pid = getpid()};
	assert_true(ring_client_address(&n_records, &late.hello.token, name));
	for (int i = 0; i < LISTENER_SILENT_MAX; i++)
		silent[i] = ring_client_connect(name);
	while (f.collector.listener.n_silent < LISTENER_SILENT_MAX)
		(void)span_collector_serve(&f.collector);
	late.ring_fd = ring_client_memory(ring_bytes(SMALL), F_SEAL_SHRINK | F_SEAL_GROW);
	struct ring_header header = {.magic = RING_MAGIC, .version = RING_VERSION, .n_records = SMALL};
	assert_int_equal(pwrite(late.ring_fd, &header, sizeof(header), 0), sizeof(header));
	assert_true(ring_client_open_sized(&client, 9, 0));
	late.connection = silent[0];
	int another = ring_client_connect(name);
	while (f.collector.totals.n_rings < 1 || f.collector.listener.n_accepted < LISTENER_SILENT_MAX + 2)
		(void)span_collector_serve(&f.collector);
	assert_int_equal(f.collector.totals.n_rings, 2);
	for (int i = 1; i < LISTENER_SILENT_MAX; i++)
		close(silent[i]);
	close(another);
	teardown(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "drain: ends with its time slice, the next one continues",
		a_drain_ends_with_its_slice);
	ROWS_ADD_ONE(&tests, "65th silent connection: the oldest is read once more before it is closed",
		message_that_arrives_before_the_connection_is_closed);
	ROWS_ADD_ONE(&tests, "drain of many rings: reads as many as its time slice allows", many_small_rings);
	ROWS_ADD_ONE(&tests, "ring larger than requested: refused; smaller: read", other_sizes_are_refused);
	ROWS_ADD_ONE(&tests, "twelve rings of 16 MiB: at most 128 MiB stay mapped",
		memory_stays_within_the_budget);
	ROWS_ADD_ONE(&tests, "end with a time limit: unread records are counted as lost",
		what_is_not_read_in_time_is_lost);
	ROWS_ADD_ONE(&tests, "end without a time limit: all records are read", the_end_reads_all);
	ROWS_ADD_ONE(&tests, "program that connects continuously: other ended programs are closed after one backlog",
		constant_connections_delay_no_end);
	ROWS_ADD_ONE(&tests,
		"second ring of an ended program behind 1000 connections: belongs to the first ring's process",
		ring_behind_others_belongs_to_its_process);
	return rows_run(&tests, "intake");
}
