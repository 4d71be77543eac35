#include "span/writer/common.h"

static uint32_t total_depth(const struct span_thread *thread)
{
	int64_t owed = atomic_load_explicit(&thread->owed, memory_order_relaxed);
	int64_t depth = (int64_t)span_thread_depth(thread) + thread->excess + owed;
	return depth > 0 ? (uint32_t)depth : 0;
}

static int open_dropped(struct span_thread *thread, uint32_t depth)
{
	if (depth == SPAN_DEPTH_MAX) {
		thread->excess++;
		return -EMSGSIZE;
	}
	thread->dropped[depth] = 1;
	span_thread_commit(thread, 0, depth + 1);
	return -ENOBUFS;
}

static __attribute__((noinline)) int drop_begin(struct span_thread *thread, uint32_t depth)
{
	span_thread_count_lost(thread, 1);
	return open_dropped(thread, depth);
}

/* Handles all cases: a category, CPU time, a new name. */
static int begin(struct span_thread *thread, const char *name, const char *category, uint32_t *ret_depth)
{
	uint32_t depth = span_thread_depth(thread);
	if (ret_depth != NULL)
		*ret_depth = depth + thread->excess;
	// A begin takes as many records as an end.
	uint32_t need = 2 * thread->end_records + (category != NULL) + span_thread_reserve(thread, depth) +
		SPAN_RANGE_RESERVE;
	struct span_slots slots;
	if (span_unlikely(depth == SPAN_DEPTH_MAX || !span_resolve(thread, name, category, need, &slots)))
		return drop_begin(thread, depth);
	struct span_record record = {.kind = RECORD_BEGIN, .slot = (uint16_t)slots.name};
	record.t_ns = thread->latest_ns = span_clock_ns(CLOCK_MONOTONIC);
	uint32_t n = 1;
	if (span_unlikely(thread->with_cpu_time)) {
		record.flags |= RECORD_HAS_CPU;
		span_put_extra(thread, n++, (uint64_t)span_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	}
	if (span_unlikely(slots.category != SPAN_NO_SLOT)) {
		record.flags |= RECORD_HAS_CATEGORY;
		span_put_extra(thread, n++, slots.category);
	}
	*span_thread_record(thread, 0) = record;
	thread->dropped[depth] = 0;
	span_thread_commit(thread, n, depth + 1);
	return 0;
}

// A begin in a signal handler that interrupted a writer call: it is lost, and the interrupted call later accounts for
// its end.
static __attribute__((noinline)) int begin_interrupting(struct span_thread *thread, uint32_t *ret_depth)
{
	if (ret_depth != NULL)
		*ret_depth = total_depth(thread);
	atomic_fetch_add_explicit(&thread->owed, 1, memory_order_relaxed);
	span_thread_count_lost(thread, 1);
	return -ENOBUFS;
}

int span_begin_taken(struct span_thread *thread, const char *name, const char *category, uint32_t *ret_depth)
{
	int r = begin(thread, name, category, ret_depth);
	span_thread_release(thread);
	return r;
}

int span_begin_otherwise(const char *name, const char *category, uint32_t *ret_depth)
{
	int session = span_session();
	if (session == SPAN_OFF)
		return 0;
	if (name == NULL)
		return -EINVAL;
	struct span_thread *thread = span_thread_get(session);
	if (thread == NULL)
		return span_without_state();
	if (!span_thread_take(thread))
		return begin_interrupting(thread, ret_depth);
	return span_begin_taken(thread, name, category, ret_depth);
}

SPAN_HOT int span_begin(const char *name, const char *category, uint32_t *ret_depth)
{
	if (ret_depth != NULL)
		*ret_depth = UINT32_MAX; // a depth that is never open
	return category == NULL ? span_begin_common(name, ret_depth) : span_begin_otherwise(name, category, ret_depth);
}

// Room for ends was reserved when their spans began.
static inline void put_end(struct span_thread *thread, uint32_t n_ended, uint32_t n_passed, uint32_t depth)
{
	struct span_record record = {.kind = RECORD_END, .slot = (uint16_t)n_passed, .n = n_ended};
	uint32_t n = 1;
	if (span_unlikely(thread->with_cpu_time)) {
		record.flags |= RECORD_HAS_CPU;
		span_put_extra(thread, n++, (uint64_t)span_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	}
	record.t_ns = thread->latest_ns = span_clock_ns(CLOCK_MONOTONIC);
	*span_thread_record(thread, 0) = record;
	span_thread_commit(thread, n, depth);
}

static int end(struct span_thread *thread, uint32_t unused)
{
	uint32_t depth = span_thread_depth(thread);
	if (thread->excess > 0) {
		thread->excess--;
		return 0;
	}
	if (depth == 0)
		return -ENOENT;
	if (thread->dropped[depth - 1])
		span_thread_commit(thread, 0, depth - 1);
	else
		put_end(thread, 1, 0, depth - 1);
	return 0;
}

int span_end_taken(struct span_thread *thread)
{
	int r = end(thread, 0);
	span_thread_release(thread);
	return r;
}

// Ends in a signal handler that interrupted a writer call: the interrupted call performs them.
static __attribute__((noinline)) int end_interrupting(struct span_thread *thread, uint32_t depth)
{
	uint32_t total = total_depth(thread);
	if (depth >= total)
		return -ENOENT;
	atomic_fetch_sub_explicit(&thread->owed, (int32_t)(total - depth), memory_order_relaxed);
	return 0;
}

void span_apply_owed(struct span_thread *thread)
{
	if (!span_thread_take(thread))
		return;
	int32_t owed = atomic_exchange_explicit(&thread->owed, 0, memory_order_relaxed);
	for (; owed > 0; owed--)
		(void)open_dropped(thread, span_thread_depth(thread));
	for (; owed < 0; owed++)
		(void)end(thread, 0);
	span_thread_release(thread);
}

// Number of recorded spans in [from, to).
static uint32_t count_written(const struct span_thread *thread, uint32_t from, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t depth = from; depth < to; depth++)
		n += !thread->dropped[depth];
	return n;
}

static int leave(struct span_thread *thread, uint32_t to)
{
	uint32_t depth = span_thread_depth(thread);
	if (to >= depth + thread->excess)
		return -ENOENT;
	if (to >= depth) {
		thread->excess = to - depth;
		return 0;
	}
	thread->excess = 0;
	uint32_t n_inner = count_written(thread, to + 1, depth), n_own = !thread->dropped[to];
	if (n_inner > 0)
		atomic_fetch_add_explicit(thread->unwound, n_inner, memory_order_relaxed);
	if (n_inner + n_own > 0)
		put_end(thread, n_inner + n_own, 0, to);
	else
		span_thread_commit(thread, 0, to);
	return 0;
}

static int end_below(struct span_thread *thread, uint32_t n_inner)
{
	uint32_t depth = span_thread_depth(thread);
	if (n_inner >= depth + thread->excess)
		return -ENOENT;
	if (n_inner < thread->excess) {
		thread->excess--;
		return 0;
	}
	uint32_t index = depth + thread->excess - 1 - n_inner;
	uint32_t n_passed = count_written(thread, index + 1, depth);
	bool was_dropped = thread->dropped[index] != 0;
	memmove(&thread->dropped[index], &thread->dropped[index + 1], depth - 1 - index);
	if (was_dropped)
		span_thread_commit(thread, 0, depth - 1);
	else
		put_end(thread, 1, n_passed, depth - 1);
	return 0;
}

/* No span was begun in this session. Checks whether the recorder still exists. */
static int end_nothing(void)
{
	return span_writer_is_recording() ? -ENOENT : 0;
}

static int end_by(int (*how)(struct span_thread *, uint32_t), uint32_t argument)
{
	int session = span_session();
	struct span_thread *thread = span_thread_self;
	if (session == SPAN_OFF)
		return 0;
	if (thread == NULL || thread->session != session)
		return end_nothing();
	if (!span_thread_take(thread))
		return end_interrupting(thread, how == leave ? argument : total_depth(thread) - 1);
	int r = how(thread, argument);
	span_thread_release(thread);
	return r;
}

int span_end_otherwise(void)
{
	return end_by(end, 0);
}

SPAN_HOT int span_end(void)
{
	return span_end_common();
}

int span_leave(uint32_t depth)
{
	return end_by(leave, depth);
}

int span_end_below(uint32_t n_inner)
{
	return end_by(end_below, n_inner);
}

uint32_t span_depth(void)
{
	struct span_thread *thread = span_thread_self;
	int session = span_session();
	return session != SPAN_OFF && thread != NULL && thread->session == session ? total_depth(thread) : 0;
}

bool span_writer_is_recording(void)
{
	int session = span_session();
	return session != SPAN_OFF && span_thread_get(session) != NULL;
}
