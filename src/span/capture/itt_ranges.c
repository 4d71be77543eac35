#include "span/capture/itt.h"

#include "span/writer/writer.h"

#include <stdatomic.h>
#include <stddef.h>

enum { RANGES_MAX = 8192, PROBES = 32 };
enum { FREE, CHANGING, KEYS_FROM };

struct open_range {
	_Atomic uint64_t key;   // FREE, CHANGING, or a key from itt_range_key
	_Atomic uint64_t range; // number of the range in the writer
};
static struct open_range open_ranges[RANGES_MAX];

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0xff51afd7ed558ccdu;
	return hash ^ hash >> 32;
}

uint64_t itt_range_key(enum itt_range_kind kind, const void *domain, const struct itt_id *id)
{
	uint64_t key = mix(mix((uint64_t)kind + 1, (uintptr_t)domain), id != NULL ? id->d1 : 0);
	if (id != NULL)
		key = mix(mix(key, id->d2), id->d3);
	return key < KEYS_FROM ? KEYS_FROM : key;
}

// Sets a slot with this key to CHANGING and returns it for exclusive use. NULL: none.
static struct open_range *take(uint64_t key, uint64_t wanted)
{
	for (uint64_t i = 0; i < PROBES; i++) {
		struct open_range *slot = &open_ranges[(key + i) % RANGES_MAX];
		uint64_t there = wanted;
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) == wanted &&
			atomic_compare_exchange_strong_explicit(&slot->key, &there, CHANGING, memory_order_acq_rel,
				memory_order_relaxed))
			return slot;
	}
	return NULL;
}

void itt_range_begin(uint64_t key, const char *name)
{
	struct open_range *slot = take(key, FREE);
	uint64_t range;
	if (slot == NULL)
		return;
	bool begun = span_range_begin(name, NULL, &range) == 0;
	atomic_store_explicit(&slot->range, begun ? range : 0, memory_order_relaxed);
	atomic_store_explicit(&slot->key, begun ? key : FREE, memory_order_release);
}

void itt_range_end(uint64_t key)
{
	struct open_range *slot = take(key, key);
	if (slot == NULL)
		return;
	uint64_t range = atomic_load_explicit(&slot->range, memory_order_relaxed);
	atomic_store_explicit(&slot->key, FREE, memory_order_release);
	span_range_end(range);
}
