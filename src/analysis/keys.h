/* Numbers 0, 1, 2 … for distinct 64-bit keys, in order of first appearance. A keyed hash keeps crafted files from
 * slowing the table down. */
#pragma once

#include "base/keyed_hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYS_NONE = UINT32_MAX };

struct keys { // {0} is an empty one; open addressing, never more than half full
	struct keys_slot {
		uint64_t key;
		uint32_t number; // number plus 1; 0: free
	} * slots;               // owned
	size_t size;             // a power of two
	uint32_t n;
	struct hash_key hash_key; // made with the first slots
};

// The key's number. A new key gets the number keys->n - 1 (n after the call). KEYS_NONE: no memory.
uint32_t keys_number(struct keys *keys, uint64_t key);
uint32_t keys_find(const struct keys *keys, uint64_t key); // KEYS_NONE: unknown key
void keys_finish(struct keys *keys);

static inline uint64_t keys_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}
