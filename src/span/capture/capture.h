/* Shared by the NVTX and ITT captures. */
#pragma once

#include "span/capture/nvtx_abi.h"
#include "span/ring.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts stored by a capture, each once and at a fixed address until the process ends. The addresses are handles that a
 * program may keep, pass at any time (after destroying them, from exit handlers), or pass wrongly. Lock-free, because
 * signal handlers and forks use it too. Bounded: further texts share the handle of TEXTS_TOO_MANY. One table per
 * library in zero-initialised data, which uses memory only as it fills. */

enum {
	TEXTS_MAX = 16384,
	TEXT_KINDS_MAX = 16,                      // each kind has its own text TEXTS_TOO_MANY
	TEXT_SLOTS = 2 * TEXTS_MAX,               // a power of two
	TEXT_BYTES_MAX = 2 * SPAN_NAME_BYTES_MAX, // of one text; longer ones are truncated
	TEXT_ARENA_BYTES = 4 << 20,
	TEXT_CLIENT_BYTES = 64,
};
#define TEXTS_TOO_MANY "(more names than can be kept)"

struct text {
	uint32_t magic, kind;
	uint32_t number; // order of creation, from 1
	uint32_t hash;
	size_t length;
	alignas(16) unsigned char buffer
		[TEXT_CLIENT_BYTES]; // memory behind the handle for the program, or for the capture itself
	char bytes[];                // NUL-terminated
};

struct text_table {
	_Atomic(struct text *) slots[TEXT_SLOTS];
	_Atomic uint32_t n;
	_Atomic size_t n_bytes;
	alignas(16) unsigned char arena[TEXT_ARENA_BYTES];
};

/* Returns the unique text with these bytes and this kind. A new one is passed to `prepare` (NULL: none) before other
 * threads can see it. Never NULL. */
struct text *string_table_add(struct text_table *table, uint32_t kind, const char *bytes,
	void (*prepare)(struct text *text));
// The text at the address `handle`; NULL: not a text of this table and kind.
struct text *string_table_find(struct text_table *table, uint32_t kind, const void *handle);

// Writes "domain/message" to room, truncated to the maximum length of a name; domain "": the message alone.
void text_join(char buffer[SPAN_NAME_BYTES_MAX + 1], const char *domain, size_t domain_length, const char *message);
// Converts a wide text to UTF-8, truncated; invalid characters become U+FFFD.
void text_from_wide(char buffer[SPAN_NAME_BYTES_MAX + 1], const wchar_t *wide);

/* Records which owner (NVTX domain, ITT domain) pushed each open span of this thread: the stacks of the owners may
 * interleave, while the ring has a single one. Stored as runs of equal owners in a few bytes of static thread storage:
 * no allocation and no lock, so it works in thread destructors and signal handlers (a handler that interrupts a push
 * may have its range attributed to the other owner, nothing worse). If more runs are open than fit, owners are not
 * distinguished until they are closed. */

enum { DOMAIN_STACK_OWNERS = 0x8000 };

// Returns the level of the new span in its owner's stack, from 0. silent: neither its begin nor its end is recorded.
int domain_stack_push(uint16_t owner, bool silent);

struct domain_stack_end {
	int level;        // of the ended span in its owner's stack
	uint32_t n_inner; // recorded spans open inside it
	bool silent;
};
// Ends the owner's innermost span. False: it has none.
bool domain_stack_pop(uint16_t owner, struct domain_stack_end *ret_end);

/* NVTX domains, registered strings, categories and messages, converted to names of spans. Handles stay valid after
 * nvtxDomainDestroy, and a domain created again by name is the same one: programs that repeat this endlessly, and late
 * threads, cause no harm. */

struct text *nvtx_domain_create(const char *name);
// NULL is the default domain. False: not a valid handle.
bool nvtx_domain_of(const void *handle, const struct text **ret_domain);
// A string is stored as the resulting name, "domain/string".
const void *nvtx_string_register(const struct text *domain, const char *string);
void nvtx_category_name(const struct text *domain, uint32_t category, const char *name);

struct nvtx_name {
	const char *text;                     // the program's own text, a stored one, or room
	char buffer[SPAN_NAME_BYTES_MAX + 1]; // left uninitialised: it is large and rarely needed
};
void nvtx_name_ascii(struct nvtx_name *name, const struct text *domain, const char *message);
void nvtx_name_wide(struct nvtx_name *name, const struct text *domain, const wchar_t *message);
void nvtx_name_of(struct nvtx_name *name, const struct text *domain, const struct nvtx_attributes *attributes);

enum { NVTX_CATEGORY_TEXT = 12 };
// The category's name, or its number in room if it has none; NULL: no category.
const char *nvtx_category_of(const struct text *domain, uint32_t category, char buffer[NVTX_CATEGORY_TEXT]);
