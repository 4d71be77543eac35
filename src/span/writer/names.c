#include "span/writer/thread.h"

void span_names_clear(struct span_names *names)
{
	memset(names->slots, 0, sizeof(names->slots));
	names->used = 0;
}

// The slot that already has this pointer, else a free one, else the next one in turn.
static uint32_t choose(struct span_names *names, const char *name, uint32_t keep)
{
	uint32_t hash = span_name_hash(name), free_slot = SPAN_NO_SLOT;
	for (uint32_t way = SPAN_NAME_WAYS; way-- > 0;) {
		uint32_t slot = hash ^ way;
		if (slot == keep)
			continue;
		if (names->slots[slot].key == name)
			return slot;
		if (names->slots[slot].key == NULL)
			free_slot = slot;
	}
	if (free_slot != SPAN_NO_SLOT)
		return free_slot;
	uint32_t slot = hash ^ (names->turn++ % SPAN_NAME_WAYS);
	return slot != keep ? slot : slot ^ 1;
}

uint32_t span_name_take(struct span_names *names, const char *name, size_t length, uint32_t keep)
{
	uint32_t slot = choose(names, name, keep);
	uint32_t room = ((uint32_t)length + 1 + 15) / 16 * 16;
	if (names->slots[slot].room < room && names->used + room > SPAN_NAME_TEXT_BYTES)
		span_names_clear(names);
	struct span_name *entry = &names->slots[slot];
	entry->key = NULL;
	if (entry->room < room) {
		entry->at = names->used;
		entry->room = (uint16_t)room;
		names->used += room;
	}
	entry->length = (uint16_t)length;
	memcpy(&names->text[entry->at], name, length);
	names->text[entry->at + length] = '\0';
	return slot;
}
