/* The names that a ring knows at present. The program gives pointers; a slot is found by the pointer and always proven by the
 * text that we hold a copy of: a name may stand in a buffer on the stack, and a library that is unloaded leaves its addresses
 * to the next one. The number of different names has no bound: slots and text are used again. */
#pragma once

#include "span/ring.h"

#include <stdbool.h>
#include <string.h>

enum {
	SPAN_NAME_WAYS = 4, // slots in which a pointer may stand: one cache line
	SPAN_NAME_TEXT_BYTES = 65536,
	SPAN_NO_SLOT = SPAN_NAME_SLOTS,
};

struct span_name {
	const char *key; // NULL: the slot is free, or its definition is not written yet
	uint32_t at;
	uint16_t length, room; // of the text; bytes it may take
};

struct span_names {
	alignas(64) struct span_name slots[SPAN_NAME_SLOTS];
	uint32_t used, turn;
	char text[SPAN_NAME_TEXT_BYTES];
};

static inline uint32_t span_name_hash(const char *name)
{
	return (uint32_t)(((uint64_t)(uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}
static_assert(SPAN_NAME_SLOTS == 1 << (64 - 54), "the hash names a slot");

// Short names, which is most of them, byte by byte: a call of strcmp costs as much as the rest of a begin.
static inline bool span_name_is(const struct span_names *names, const struct span_name *slot, const char *name)
{
	const char *text = &names->text[slot->at];
	if (slot->length >= 16)
		return slot->length < SPAN_NAME_BYTES_MAX ? strcmp(text, name) == 0
							  : strncmp(text, name, SPAN_NAME_BYTES_MAX) == 0;
	size_t i = 0;
	while (text[i] == name[i] && text[i] != '\0')
		i++;
	return text[i] == name[i];
}

// SPAN_NO_SLOT: it must be defined first.
static inline uint32_t span_name_find(const struct span_names *names, const char *name)
{
	uint32_t hash = span_name_hash(name);
	for (uint32_t way = 0; way < SPAN_NAME_WAYS; way++) {
		const struct span_name *slot = &names->slots[hash ^ way];
		if (slot->key == name && span_name_is(names, slot, name))
			return hash ^ way;
	}
	return SPAN_NO_SLOT;
}

void span_names_clear(struct span_names *names);
/* A slot other than `keep` with a copy of the text. It is found only after span_name_confirm, when its definition has been
 * written; a call that was left in between (siglongjmp) has cost a free slot. */
uint32_t span_name_take(struct span_names *names, const char *name, size_t length, uint32_t keep);
static inline void span_name_confirm(struct span_names *names, uint32_t slot, const char *name)
{
	names->slots[slot].key = name;
}
