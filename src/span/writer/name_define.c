#include "span/writer/common.h"

static uint32_t name_records(const char *name)
{
	return name != NULL ? 1 + ((uint32_t)strnlen(name, SPAN_NAME_BYTES_MAX) + 15) / 16 : 0;
}

// Requires room. A name definition without an event is harmless, so it is not part of the event that follows.
static uint32_t define(struct span_thread *thread, const char *name, uint32_t keep)
{
	size_t length = strnlen(name, SPAN_NAME_BYTES_MAX);
	uint32_t slot = span_name_take(&thread->names, name, length, keep);
	*span_thread_record(thread,
		0) = (struct span_record){.kind = RECORD_NAME, .slot = (uint16_t)slot, .n = (uint32_t)length};
	const char *text = &thread->names.text[thread->names.slots[slot].at];
	uint32_t n = 1;
	for (size_t done = 0; done < length; done += sizeof(struct span_record)) {
		char bytes[sizeof(struct span_record)] = {0};
		size_t more = length - done < sizeof(bytes) ? length - done : sizeof(bytes);
		memcpy(bytes, text + done, more);
		memcpy(span_thread_record(thread, n++), bytes, sizeof(bytes));
	}
	span_thread_commit(thread, n, span_thread_depth(thread));
	span_name_confirm(&thread->names, slot, name);
	return slot;
}

static uint32_t find_or_define(struct span_thread *thread, const char *name, uint32_t keep)
{
	uint32_t slot = span_name_find(&thread->names, name);
	return slot != SPAN_NO_SLOT ? slot : define(thread, name, keep);
}

// Gets room first, because a new block has no names.
bool span_resolve_slowly(struct span_thread *thread, const char *name, const char *category, uint32_t need,
	struct span_slots *ret_slots)
{
	if (!span_thread_has_room(thread, need + name_records(name) + name_records(category)))
		return false;
	ret_slots->category = category != NULL ? find_or_define(thread, category, SPAN_NO_SLOT) : SPAN_NO_SLOT;
	ret_slots->name = find_or_define(thread, name, ret_slots->category);
	return true;
}
