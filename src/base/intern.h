/* Equal keys get equal numbers: 0, 1, 2 … in order of first appearance. Keys are bytes of any kind, copied once; those of
 * hostile files make no table slow. */
#pragma once

#include "base/arena.h"
#include "base/keyed_hash.h"

#include <stddef.h>
#include <stdint.h>

struct intern_key {
	const void *bytes; // in the arena; a NUL follows, so that texts can be read as such
	uint32_t size, hash;
};

struct intern {
	struct arena *arena;     // borrowed
	struct intern_key *keys; // owned; key i has number i
	size_t n, capacity;
	uint32_t *slots;     // owned: number + 1, 0 free; never more than half full
	size_t n_slots;      // a power of two
	struct hash_key key; // made with the first slots
};

void intern_init(struct intern *intern, struct arena *arena);
void intern_finish(struct intern *intern); // the keys' bytes live on in the arena
// The key's number; -ENOMEM.
int64_t intern_number(struct intern *intern, const void *bytes, size_t size);
// The number of a key that is there already; -ENOENT.
int64_t intern_find(const struct intern *intern, const void *bytes, size_t size);
