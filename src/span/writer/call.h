/* What every call of the writer is made of: take the state, find the names, write, give the state back. */
#pragma once

#include "span/writer/thread.h"
#include "span/writer/writer.h"

#include <errno.h>
#include <time.h>

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

// What a call says that found no state to write with.
static inline int span_without_state(void)
{
	return span_writer_is_on() ? -ENOBUFS : 0;
}

// What handlers have begun and ended meanwhile. Called with the state given back.
void span_settle(struct span_thread *thread);

static inline void span_thread_release(struct span_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->busy, 0, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (span_unlikely(atomic_load_explicit(&thread->owed, memory_order_relaxed) != 0))
		span_settle(thread);
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
