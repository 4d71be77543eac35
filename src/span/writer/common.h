/* The common case of begin and end, short enough to be inlined into the exported calls: the thread has its state, the
 * name is known, there is room, and no interrupted call is in progress. nested.c handles and documents all other cases.
 *
 * The clock is read first, so that the processor waits for it once and for nothing else. If a signal handler has
 * written since (latest_ns), it is read again. */
#pragma once

#include "span/writer/thread.h"
#include "span/writer/writer.h"

#include <errno.h>
#include <time.h>

/* Steps of every writer call: take the state, find the names, write, release the state. */

static inline int64_t span_clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int span_session(void)
{
	return atomic_load_explicit(&span_writer_state, memory_order_relaxed);
}

// Result of a call without a state to write with.
static inline int span_without_state(void)
{
	return span_writer_is_on() ? -ENOBUFS : 0;
}

// Applies the begins and ends of signal handlers to the depth. Call after releasing the state.
void span_apply_owed(struct span_thread *thread);

static inline void span_thread_release(struct span_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->busy, 0, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (span_unlikely(atomic_load_explicit(&thread->owed, memory_order_relaxed) != 0))
		span_apply_owed(thread);
}

static inline void span_put_extra(const struct span_thread *thread, uint32_t i, uint64_t number)
{
	struct record_extra extra = {.number = number};
	memcpy(span_thread_record(thread, i), &extra, sizeof(extra));
}

struct span_slots {
	uint32_t name, category; // SPAN_NO_SLOT: none
};

/* Slots for the names (category NULL: none) and room for `need` records; false: no room. */
bool span_resolve_slowly(struct span_thread *thread, const char *name, const char *category, uint32_t need,
	struct span_slots *ret_slots);

static inline bool span_resolve(struct span_thread *thread, const char *name, const char *category, uint32_t need,
	struct span_slots *ret_slots)
{
	ret_slots->name = span_name_find(&thread->names, name);
	ret_slots->category = SPAN_NO_SLOT;
	if (span_likely(category == NULL && ret_slots->name != SPAN_NO_SLOT && thread->head + need <= thread->limit))
		return true;
	return span_resolve_slowly(thread, name, category, need, ret_slots);
}

// For a state that is already taken; these functions release it.
int span_begin_taken(struct span_thread *thread, const char *name, const char *category, uint32_t *ret_depth);
int span_end_taken(struct span_thread *thread);
// Complete begin and end, including taking the state.
int span_begin_otherwise(const char *name, const char *category, uint32_t *ret_depth);
int span_end_otherwise(void);

static inline bool span_is_ours(const struct span_thread *thread, int session)
{
	return span_likely(thread != NULL && thread->session == session);
}

static inline void span_put(struct span_thread *thread, uint8_t kind, uint32_t slot, uint32_t n, int64_t t_ns)
{
	struct span_record *record = span_thread_record(thread, 0);
	record->t_ns = t_ns;
	record->kind = kind;
	record->flags = 0;
	record->slot = (uint16_t)slot;
	record->n = n;
	thread->latest_ns = t_ns;
}

static inline __attribute__((always_inline)) int span_begin_common(const char *name, uint32_t *ret_depth)
{
	int session = span_session();
	int64_t t_ns = span_clock_ns(CLOCK_MONOTONIC);
	struct span_thread *thread = span_thread_self;
	if (span_unlikely(!span_is_ours(thread, session) || name == NULL ||
		    atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0))
		return span_begin_otherwise(name, NULL, ret_depth);
	span_thread_mark_busy(thread, (uintptr_t)__builtin_frame_address(0));
	uint32_t depth = span_thread_depth(thread), slot = span_name_find(&thread->names, name);
	if (span_unlikely(slot == SPAN_NO_SLOT || thread->with_cpu_time || depth == SPAN_DEPTH_MAX ||
		    t_ns < thread->latest_ns || thread->head + depth + (2 + 1 + SPAN_RANGE_RESERVE) > thread->limit))
		return span_begin_taken(thread, name, NULL, ret_depth);
	if (ret_depth != NULL)
		*ret_depth = depth;
	span_put(thread, RECORD_BEGIN, slot, 0, t_ns);
	thread->dropped[depth] = 0;
	span_thread_commit(thread, 1, depth + 1);
	span_thread_release(thread);
	return 0;
}

static inline __attribute__((always_inline)) int span_end_common(void)
{
	int session = span_session();
	int64_t t_ns = span_clock_ns(CLOCK_MONOTONIC);
	struct span_thread *thread = span_thread_self;
	if (span_unlikely(
		    !span_is_ours(thread, session) || atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0))
		return span_end_otherwise();
	span_thread_mark_busy(thread, (uintptr_t)__builtin_frame_address(0));
	uint32_t depth = span_thread_depth(thread);
	if (span_unlikely(depth == 0 || thread->dropped[depth - 1] || thread->with_cpu_time || thread->excess > 0 ||
		    t_ns < thread->latest_ns))
		return span_end_taken(thread);
	span_put(thread, RECORD_END, 0, 1, t_ns);
	span_thread_commit(thread, 1, depth - 1);
	span_thread_release(thread);
	return 0;
}
