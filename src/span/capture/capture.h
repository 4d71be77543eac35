/* What the captures share. */
#pragma once

#include "span/capture/nvtx_abi.h"
#include "span/ring.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts that a capture keeps, each once and at an address of its own until the process ends: handles that a program may hold,
 * give back at any time (after it destroyed them, from exit handlers) and get wrong. Lock-free, for signal handlers and
 * forks too; bounded: the texts beyond that share the handle of TEXTS_TOO_MANY. One table a library, in its zeroed data, so
 * that it takes memory only as it fills. */

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

/* Which owner (NVTX domain, ITT domain) pushed what in this thread: the owners' stacks may cross, the ring has one. Kept as
 * runs of equal owners in a few bytes of static thread storage: no allocation and no lock, neither in a thread's destructors
 * nor in a signal handler (one that interrupts a push may have its range taken for the other owner's, no more). Where more
 * runs are open than fit, owners are no longer told apart until they are closed. */

enum { NEST_OWNERS = 0x8000 };

// Level of the new one in its owner's stack, from 0. silent: it is not recorded, its end will not be either.
int nest_push(uint16_t owner, bool silent);

struct nest_end {
	int level;        // of what ends, in its owner's stack
	uint32_t n_inner; // recorded ones that are open inside it
	bool silent;
};
// Ends the owner's innermost. False: it has none.
bool nest_pop(uint16_t owner, struct nest_end *ret_end);

/* What NVTX calls things: domains, registered strings, categories and messages, as names of spans. Handles stay good after
 * nvtxDomainDestroy, and a domain that is created again by its name is the same one: programs that do so without end, and
 * threads that come late, harm nobody. */

struct text *nvtx_domain_create(const char *name);
// NULL is the default domain. False: no handle of ours.
bool nvtx_domain_of(const void *handle, const struct text **ret_domain);
// A string is kept as the name that it gives, "domain/string".
const void *nvtx_string_register(const struct text *domain, const char *string);
void nvtx_category_name(const struct text *domain, uint32_t category, const char *name);

struct nvtx_name {
	const char *text;                   // the program's own, a kept one, or room
	char room[SPAN_NAME_BYTES_MAX + 1]; // not cleared: it is large, and rarely needed
};
void nvtx_name_ascii(struct nvtx_name *name, const struct text *domain, const char *message);
void nvtx_name_wide(struct nvtx_name *name, const struct text *domain, const wchar_t *message);
void nvtx_name_of(struct nvtx_name *name, const struct text *domain, const struct nvtx_attributes *attributes);

enum { NVTX_CATEGORY_TEXT = 12 };
// The category's name, or its number in room where it has none; NULL: no category.
const char *nvtx_category_of(const struct text *domain, uint32_t category, char room[NVTX_CATEGORY_TEXT]);
