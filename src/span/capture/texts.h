/* Texts that a capture keeps, each once and at an address of its own until the process ends: handles that a program may hold,
 * give back at any time (after it destroyed them, from exit handlers) and get wrong. Lock-free, for signal handlers and
 * forks too; bounded: the texts beyond that share the handle of TEXTS_TOO_MANY. One table a library, in its zeroed data, so
 * that it takes memory only as it fills. */
#pragma once

#include "span/ring.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TEXTS_MOST = 16384,
	TEXT_KINDS_MOST = 16,                     // each has a last text of its own: TEXTS_TOO_MANY
	TEXT_SLOTS = 2 * TEXTS_MOST,              // a power of two
	TEXT_BYTES_MAX = 2 * SPAN_NAME_BYTES_MAX, // of one text, longer ones are cut
	TEXT_ARENA_BYTES = 4 << 20,
	TEXT_ROOM_BYTES = 64,
};
#define TEXTS_TOO_MANY "(more names than can be kept)"

struct text {
	uint32_t magic, kind;
	uint32_t number; // in order of arrival, from 1
	uint32_t hash;
	size_t length;
	alignas(16) unsigned char room
		[TEXT_ROOM_BYTES]; // what the program sees behind the handle, or the capture's own
	char bytes[];              // NUL-terminated
};

struct text_table {
	_Atomic(struct text *) slots[TEXT_SLOTS];
	_Atomic uint32_t n;
	_Atomic size_t n_bytes;
	alignas(16) unsigned char arena[TEXT_ARENA_BYTES];
};

/* The one text of these bytes and this kind. A new one is given to `prepare` (NULL: none) before anybody else can see it.
 * Never NULL. */
struct text *text_keep(struct text_table *table, uint32_t kind, const char *bytes, void (*prepare)(struct text *text));
// The text of a handle that is its address; NULL: no text of this table and kind.
struct text *text_check(struct text_table *table, uint32_t kind, const void *handle);

// "domain/message" in room, cut to what a name may have; domain "": the message alone.
void text_join(char room[SPAN_NAME_BYTES_MAX + 1], const char *domain, size_t domain_length, const char *message);
// A wide text as UTF-8, cut; what is no character becomes U+FFFD.
void text_from_wide(char room[SPAN_NAME_BYTES_MAX + 1], const wchar_t *wide);
