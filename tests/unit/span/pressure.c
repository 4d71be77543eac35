// Full rings, signal handlers during a call, calls left by siglongjmp: the stream stays balanced.
#include "rows.h"

#include "span/writer/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "fake_recorder.h"

static struct fake_recorder connected(uint32_t n_records, uint32_t flags)
{
	struct fake_recorder fake;
	fake_open(&fake, n_records, flags);
	assert_int_equal(span_writer_connect(fake.address), 0);
	return fake;
}

static void disconnect(struct fake_recorder *fake)
{
	span_writer_disconnect();
	fake_close(fake);
}

static void check_full(uint32_t flags)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN, flags);
	uint64_t dropped = 0;
	for (int i = 0; i < 2000; i++) {
		for (int depth = 0; depth < 5; depth++)
			dropped += span_begin("nested", NULL, NULL) == -ENOBUFS;
		for (int depth = 0; depth < 5; depth++)
			assert_int_equal(span_end(), 0);
		assert_int_equal(span_end(), -ENOENT);
		if (i == 1000)
			fake_read_all(&fake); // there is room again
	}
	struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->reading.depth, 0);
	assert_int_equal(ring->reading.n_begins + dropped, 10000);
	assert_int_equal(ring->reading.n_begins, ring->reading.n_ended);
	assert_int_equal(ring->header->lost, dropped);
	assert_true(ring->reading.n_begins > 400 && dropped > 5000);
	disconnect(&fake);
}

static void a_full_ring_loses_whole_spans(void **state)
{
	check_full(0);
}

static void a_full_ring_with_cpu_time(void **state)
{
	check_full(RING_CPU_TIME);
}

static void ends_find_room(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN, 0);
	int n_open = 0;
	while (span_begin("deeper", NULL, NULL) == 0)
		n_open++;
	while (span_mark("noise", NULL) == 0)
		;
	for (int i = 0; i < n_open + 1; i++)
		assert_int_equal(span_end(), 0);
	assert_int_equal(span_end(), -ENOENT);
	struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->reading.n_ended, n_open);
	assert_int_equal(ring->reading.depth, 0);
	disconnect(&fake);
}

static void ends_of_ranges_find_room(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN, 0);
	uint64_t ranges[64], lost;
	for (int i = 0; i < 64; i++)
		assert_int_equal(span_range_begin("load", NULL, &ranges[i]), 0);
	while (span_mark("noise", NULL) == 0)
		;
	assert_int_equal(span_range_begin("load", NULL, &lost), -ENOBUFS);
	for (int i = 0; i < 64; i++)
		assert_int_equal(span_range_end(ranges[i]), 0);
	assert_int_equal(span_range_end(lost), 0);
	assert_int_equal(fake_only(&fake)->reading.n_range_ends, 64);
	disconnect(&fake);
}

static void too_deep(void **state)
{
	struct fake_recorder fake = connected(8192, 0);
	for (int i = 0; i < SPAN_DEPTH_MAX; i++)
		assert_int_equal(span_begin("deeper", NULL, NULL), 0);
	uint32_t depth;
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(span_begin("too deep", NULL, &depth), -EMSGSIZE);
	assert_int_equal(depth, SPAN_DEPTH_MAX + 99999);
	assert_int_equal(span_leave(SPAN_DEPTH_MAX + 50000), 0);
	assert_int_equal(span_depth(), SPAN_DEPTH_MAX + 50000);
	for (uint32_t i = 0; i < SPAN_DEPTH_MAX + 50000; i++)
		assert_int_equal(span_end(), 0);
	assert_int_equal(span_end(), -ENOENT);
	struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->reading.n_ended, SPAN_DEPTH_MAX);
	assert_int_equal(ring->reading.depth, 0);
	assert_int_equal(ring->header->lost, 100000);
	disconnect(&fake);
}

static void a_dropped_span_between_written_ones(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN, 0);
	assert_int_equal(span_begin("outer", NULL, NULL), 0);
	while (span_mark("noise", NULL) == 0)
		;
	assert_int_equal(span_begin("dropped", NULL, NULL), -ENOBUFS);
	fake_read_all(&fake);
	assert_int_equal(span_begin("inner", NULL, NULL), 0);
	assert_int_equal(span_begin("innermost", NULL, NULL), 0);
	assert_int_equal(span_leave(0), 0);
	struct reading *reading = &fake_only(&fake)->reading;
	assert_int_equal(reading->n_begins, 3);
	assert_int_equal(reading->n_ended, 3);
	assert_int_equal(fake.rings[0].header->unwound, 2);
	disconnect(&fake);
}

static void an_impossible_tail_is_a_full_ring(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN, 0);
	assert_int_equal(span_begin("a", NULL, NULL), 0);
	fake_accept(&fake);
	atomic_store(&fake.rings[0].header->tail, UINT64_MAX / 2);
	for (int i = 0; i < 2000; i++)
		(void)span_mark("noise", NULL);
	assert_int_equal(span_end(), 0);
	assert_true(atomic_load(&fake.rings[0].header->head) <= RING_RECORDS_MIN);
	disconnect(&fake);
}

/* ---- signals ---- */

static _Atomic uint64_t n_handled;

static void mark_in_handler(int number)
{
	uint32_t depth;
	(void)span_begin("in the handler", NULL, NULL);
	(void)span_metric("signal", number);
	(void)span_begin("left in the handler", NULL, &depth);
	(void)span_begin("left in the handler too", NULL, NULL);
	(void)span_leave(depth);
	(void)span_end();
	n_handled++;
}

static void set_timer(int signal_number, void (*handler)(int), int us)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	struct itimerval timer = {.it_interval.tv_usec = us, .it_value.tv_usec = us};
	assert_return_code(sigaction(signal_number, &action, NULL), errno);
	assert_return_code(setitimer(ITIMER_REAL, &timer, NULL), errno);
}

static void stop_timer(void)
{
	assert_return_code(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), errno);
	signal(SIGALRM, SIG_IGN); // pending signals are discarded
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static void handlers_in_the_midst(void **state)
{
	struct fake_recorder fake = connected(65536, 0);
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	set_timer(SIGALRM, mark_in_handler, 20);
	for (uint64_t i = 0; seconds_since(&start) < 2; i++) {
		(void)span_begin("outer", NULL, NULL);
		(void)span_begin(i % 2 == 0 ? "even" : "odd", NULL, NULL);
		assert_int_equal(span_end(), 0);
		assert_int_equal(span_end(), 0);
		if (i % 1000 == 0)
			fake_read_all(&fake);
	}
	stop_timer();
	assert_int_equal(span_end(), -ENOENT);
	assert_int_equal(span_depth(), 0);
	struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->reading.depth, 0);
	assert_int_equal(ring->reading.n_begins, ring->reading.n_ended);
	assert_true(n_handled > 1000);
	disconnect(&fake);
}

static sigjmp_buf out;

static void jump_out(int number)
{
	siglongjmp(out, 1);
}

static void hold_alarms(int how)
{
	sigset_t alarms;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(how, &alarms, NULL);
}

static void spans_for_ever(void)
{
	hold_alarms(SIG_UNBLOCK);
	for (;;) {
		(void)span_begin("inner", NULL, NULL);
		(void)span_end();
	}
}

// A timeout by alarm and siglongjmp, as interpreters do it, thousands of times.
static void calls_that_never_come_back(void **state)
{
	struct fake_recorder fake = connected(65536, 0);
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	hold_alarms(SIG_BLOCK);
	set_timer(SIGALRM, jump_out, 50);
	volatile int n_jumps = 0;
	while (seconds_since(&start) < 2) {
		uint32_t depth;
		assert_int_equal(span_begin("outer", NULL, &depth), 0);
		if (sigsetjmp(out, 1) == 0)
			spans_for_ever();
		n_jumps++;
		assert_int_equal(span_leave(depth), 0);
		assert_int_equal(span_depth(), 0);
		fake_read_all(&fake);
	}
	stop_timer();
	hold_alarms(SIG_UNBLOCK);
	struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->reading.depth, 0);
	assert_int_equal(ring->header->lost, 0);
	assert_true(n_jumps > 100);
	disconnect(&fake);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "full ring: whole spans are lost and counted", a_full_ring_loses_whole_spans);
	ROWS_ADD_ONE(&tests, "full ring with CPU time: whole spans are lost and counted", a_full_ring_with_cpu_time);
	ROWS_ADD_ONE(&tests, "room is reserved for the ends of all open spans", ends_find_room);
	ROWS_ADD_ONE(&tests, "room is reserved for the ends of ranges", ends_of_ranges_find_room);
	ROWS_ADD_ONE(&tests, "a hundred thousand spans nested too deep: counted and balanced", too_deep);
	ROWS_ADD_ONE(&tests, "lost span between recorded ones", a_dropped_span_between_written_ones);
	ROWS_ADD_ONE(&tests, "invalid tail: treated as a full ring", an_impossible_tail_is_a_full_ring);
	ROWS_ADD_ONE(&tests, "signal handlers during calls: balanced", handlers_in_the_midst);
	ROWS_ADD_ONE(&tests, "calls left by siglongjmp: balanced, later calls work", calls_that_never_come_back);
	return rows_run(&tests, "pressure");
}
