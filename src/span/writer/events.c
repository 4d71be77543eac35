#include "span/writer/common.h"

#include <math.h>

// Returned for a range without room; its end is ignored.
static const uint64_t range_lost = UINT64_MAX;
// Range numbers: the number of the state in the upper bits, and the count of its ranges below.
enum { RANGE_COUNT_BITS = 40 };

/* A range, mark or metric: one record, an extra one (has_extra), and one for the category. */
struct event {
	uint8_t kind;
	bool has_extra;
	uint64_t extra;
	const char *name, *category;
};

static int put(struct span_thread *thread, const struct event *event)
{
	uint32_t need = 1U + event->has_extra + (event->category != NULL) +
		span_thread_reserve(thread, span_thread_depth(thread));
	struct span_slots slots = {0, SPAN_NO_SLOT};
	bool has_room = event->name != NULL
		? span_resolve(thread, event->name, event->category, need + SPAN_RANGE_RESERVE, &slots)
		: span_thread_has_room(thread, need);
	if (span_unlikely(!has_room)) {
		span_thread_count_lost(thread, 1);
		return -ENOBUFS;
	}
	struct span_record record = {.kind = event->kind, .slot = (uint16_t)slots.name};
	uint32_t n = 1;
	if (event->has_extra)
		span_put_extra(thread, n++, event->extra);
	if (slots.category != SPAN_NO_SLOT) {
		record.flags = RECORD_HAS_CATEGORY;
		span_put_extra(thread, n++, slots.category);
	}
	record.t_ns = thread->latest_ns = span_clock_ns(CLOCK_MONOTONIC);
	*span_thread_record(thread, 0) = record;
	span_thread_commit(thread, n, span_thread_depth(thread));
	return 0;
}

// Call only while recording is on.
static int write_event(struct span_thread *thread, const struct event *event)
{
	if (span_unlikely(!span_thread_take(thread))) {
		span_thread_count_lost(thread, 1);
		return -ENOBUFS;
	}
	int r = put(thread, event);
	span_thread_release(thread);
	return r;
}

static int write_named(int session, const struct event *event)
{
	if (event->name == NULL)
		return -EINVAL;
	struct span_thread *thread = span_thread_get(session);
	return thread != NULL ? write_event(thread, event) : span_without_state();
}

// Atomic, because a signal handler may interrupt it.
static uint64_t next_range(struct span_thread *thread)
{
	uint64_t count = atomic_fetch_add_explicit(&thread->n_ranges, 1, memory_order_relaxed) + 1;
	return (uint64_t)thread->number << RANGE_COUNT_BITS | count;
}

int span_range_begin(const char *name, const char *category, uint64_t *ret_range)
{
	int session = span_session();
	*ret_range = 0;
	if (session == SPAN_OFF)
		return 0;
	if (name == NULL)
		return -EINVAL;
	struct span_thread *thread = span_thread_get(session);
	*ret_range = range_lost;
	if (thread == NULL)
		return span_without_state();
	uint64_t range = next_range(thread);
	int r = write_event(thread,
		&(struct event){.kind = RECORD_RANGE_BEGIN,
			.has_extra = true,
			.extra = range,
			.name = name,
			.category = category});
	if (r == 0)
		*ret_range = range;
	return r;
}

int span_range_end(uint64_t range)
{
	int session = span_session();
	if (session == SPAN_OFF || range == range_lost)
		return 0;
	if (!span_threads_had(range >> RANGE_COUNT_BITS) || range << (64 - RANGE_COUNT_BITS) == 0)
		return -ENOENT;
	struct span_thread *thread = span_thread_get(session);
	if (thread == NULL)
		return span_without_state();
	return write_event(thread, &(struct event){.kind = RECORD_RANGE_END, .has_extra = true, .extra = range});
}

int span_mark(const char *name, const char *category)
{
	int session = span_session();
	if (session == SPAN_OFF)
		return 0;
	return write_named(session, &(struct event){.kind = RECORD_MARK, .name = name, .category = category});
}

int span_metric(const char *name, double value)
{
	int session = span_session();
	if (session == SPAN_OFF)
		return 0;
	if (!isfinite(value))
		return -EINVAL;
	struct record_extra extra = {.value = value};
	return write_named(session,
		&(struct event){.kind = RECORD_METRIC, .has_extra = true, .extra = extra.number, .name = name});
}
