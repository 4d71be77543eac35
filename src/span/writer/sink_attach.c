#include "span/writer/internal.h"

#include <sys/mman.h>

static _Atomic bool are_wiped;

void span_sinks_wipe(bool is_wiped)
{
	atomic_store_explicit(&are_wiped, is_wiped, memory_order_relaxed);
}

bool span_sinks_are_wiped(void)
{
	return atomic_load_explicit(&are_wiped, memory_order_relaxed);
}

static void use(struct span_thread *thread, struct span_record *records, uint64_t mask, struct span_counters counters)
{
	thread->records = records;
	thread->mask = mask;
	thread->limit = 0;
	thread->head = 0;
	thread->shared_head = counters.head;
	thread->lost = counters.lost;
	thread->unwound = counters.unwound;
	atomic_store_explicit(&thread->cursor, span_thread_depth(thread), memory_order_relaxed);
	span_names_clear(&thread->names);
}

static void unmap(struct span_thread *thread)
{
	if (thread->sink.map != NULL)
		munmap(thread->sink.map, thread->sink.map_bytes);
}

void span_sink_attach(struct span_thread *thread, const struct span_sink *sink, struct span_record *records,
	uint64_t mask, struct span_counters counters)
{
	atomic_store(counters.lost, atomic_exchange(&thread->nowhere[1], 0));
	atomic_store(counters.unwound, atomic_exchange(&thread->nowhere[2], 0));
	if (span_sinks_are_wiped())
		(void)madvise(sink->map, sink->map_bytes, MADV_DONTFORK);
	unmap(thread);
	thread->sink = *sink;
	use(thread, records, mask, counters);
}

void span_sink_detach(struct span_thread *thread)
{
	unmap(thread);
	thread->sink = (struct span_sink){.kind = SINK_NONE};
	thread->with_cpu_time = false;
	thread->end_records = 1;
	use(thread, NULL, 0, (struct span_counters){&thread->nowhere[0], &thread->nowhere[1], &thread->nowhere[2]});
}
