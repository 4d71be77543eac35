/* FNV-1a, for names that an attacker cannot choose. Tables with untrusted keys use base/keyed_hash.h.
 * http://www.isthe.com/chongo/tech/comp/fnv/ */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FNV_START_U32 UINT32_C(2166136261)
#define FNV_START_U64 UINT64_C(0xcbf29ce484222325)

// Extends the hash `hash` by the bytes.
static inline uint32_t fnv_u32(uint32_t hash, const void *bytes, size_t size)
{
	for (const unsigned char *at = bytes, *end = at + size; at < end; at++)
		hash = (hash ^ *at) * UINT32_C(16777619);
	return hash;
}

static inline uint64_t fnv_u64(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}
