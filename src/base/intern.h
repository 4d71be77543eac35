/* Assigns numbers to keys: equal keys have equal numbers, 0, 1, 2 … by first appearance. Keys are arbitrary bytes, copied
 * once. Keys of hostile files can't slow the table down. */
#pragma once

#include "base/arena.h"
#include "base/keyed_hash.h"

#include <stddef.h>
#include <stdint.h>

struct intern_key {
	const void *bytes; // in the arena, followed by a NUL so that texts can be used as strings
	uint32_t size, hash;
};

struct intern {
	struct arena *arena;     // borrowed
	struct intern_key *keys; // owned; key i has number i
	size_t n, capacity;
	uint32_t *slots;     // owned: number + 1, 0: free; at most half full
	size_t n_slots;      // a power of two
	struct hash_key key; // created with the first slots
};

void intern_init(struct intern *intern, struct arena *arena);
void intern_finish(struct intern *intern); // the keys' bytes remain valid in the arena
// Returns the key's number, new if necessary; -ENOMEM.
int64_t intern_number(struct intern *intern, const void *bytes, size_t size);
// Returns the number of an existing key; -ENOENT.
int64_t intern_find(const struct intern *intern, const void *bytes, size_t size);
