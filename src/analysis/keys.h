/* Numbers 0, 1, 2 … for different 64-bit keys, in the order in which they are met. Those of hostile files make no table slow. */
#pragma once

#include "base/keyed_hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYS_NONE = UINT32_MAX };

struct keys { // {0} is an empty one; open addressing, never more than half full
	struct keys_slot {
		uint64_t key;
		uint32_t number; // plus 1; 0: free
	} * slots;               // owned
	size_t size;             // a power of two
	uint32_t n;
	struct hash_key hash_key; // made with the first slots
};

// The key's number, a new one if it was not met before: then that is keys->n - 1. KEYS_NONE: no memory.
uint32_t keys_number(struct keys *keys, uint64_t key);
uint32_t keys_find(const struct keys *keys, uint64_t key); // KEYS_NONE: not met
void keys_finish(struct keys *keys);

static inline uint64_t keys_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}
