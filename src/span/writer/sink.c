#include "span/writer/internal.h"

#include <sys/mman.h>
#include <time.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // of Linux 5.14
#endif

enum {
	BACKED_RECORDS_MIN = 1024,  // 16 KiB
	BACKED_RECORDS_MAX = 16384, // 256 KiB
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool span_sink_renew(struct span_thread *thread)
{
	struct quiet quiet;
	struct span_source source;
	int64_t now = now_ns();
	if (now < thread->sink.retry_ns || !span_source_get(thread->session, &source))
		return false;
	thread->sink.retry_ns = now + SPAN_RETRY_NS;
	quiet_begin(&quiet);
	int r = source.is_file ? span_block_claim(thread) : span_ring_open(thread, &source.ring);
	quiet_end(&quiet);
	if (r < 0 && !span_errno_passes(r))
		span_source_failed(thread->session);
	return r >= 0;
}

/* Populates memory for the next records in growing steps: single pages would stop the thread at each page, and the
 * whole ring would cost a thread with three spans 2 MiB. Kernels without this call (before 5.14) provide pages when
 * touched. */
static bool back(struct span_thread *thread, uint64_t end, uint64_t n_records)
{
	struct span_sink *sink = &thread->sink;
	while (sink->backed < end && sink->backed < n_records) {
		uint64_t step = sink->backed < BACKED_RECORDS_MIN ? BACKED_RECORDS_MIN
			: sink->backed > BACKED_RECORDS_MAX       ? BACKED_RECORDS_MAX
								  : sink->backed;
		if (step > n_records - sink->backed)
			step = n_records - sink->backed;
		struct quiet quiet;
		quiet_begin(&quiet);
		int r = madvise(&thread->records[sink->backed], step * sizeof(struct span_record), MADV_POPULATE_WRITE);
		bool is_done = r == 0 || errno == EINVAL;
		quiet_end(&quiet);
		if (!is_done)
			return false;
		sink->backed += step;
	}
	return true;
}

// Reads the recorder's progress. An invalid tail counts as a full ring.
static bool ring_room(struct span_thread *thread, uint64_t need)
{
	uint64_t n_records = thread->mask + 1;
	uint64_t tail = atomic_load_explicit(thread->sink.tail, memory_order_acquire);
	if (thread->head - tail > n_records || need > n_records - (thread->head - tail))
		return false;
	if (!back(thread, thread->head + need, n_records))
		return false;
	uint64_t free_until = tail + n_records;
	bool is_backed = thread->sink.backed == n_records;
	thread->limit = is_backed || free_until < thread->sink.backed ? free_until : thread->sink.backed;
	return true;
}

static bool block_room(struct span_thread *thread, uint64_t need)
{
	if (need > SPAN_BLOCK_RECORDS)
		return false;
	if (thread->head + need > SPAN_BLOCK_RECORDS && !span_sink_renew(thread))
		return false;
	thread->limit = SPAN_BLOCK_RECORDS;
	return true;
}

static bool sink_room(struct span_thread *thread, uint64_t need)
{
	if (thread->sink.kind == SINK_NONE && !span_sink_renew(thread))
		return false;
	if (thread->sink.kind == SINK_RING)
		return ring_room(thread, need);
	return block_room(thread, need);
}

static void announce(struct span_thread *thread)
{
	*span_thread_record(thread, 0) = (struct span_record){.kind = RECORD_THREAD, .n = (uint32_t)thread->tid};
	thread->sink.is_announced = true;
	span_thread_commit(thread, 1, span_thread_depth(thread));
}

bool span_thread_make_room(struct span_thread *thread, uint32_t need)
{
	if (!sink_room(thread, (uint64_t)need + !thread->sink.is_announced))
		return false;
	if (!thread->sink.is_announced)
		announce(thread);
	return true;
}
