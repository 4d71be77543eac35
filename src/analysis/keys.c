#include "analysis/keys.h"

#include "base/util.h"

static size_t slot_of(const struct keys *keys, uint64_t key)
{
	size_t i = (size_t)keyed_hash_u64(&keys->hash_key, key) & (keys->size - 1);
	while (keys->slots[i].number != 0 && keys->slots[i].key != key)
		i = (i + 1) & (keys->size - 1);
	return i;
}

static bool grow(struct keys *keys)
{
	struct keys larger = {.size = keys->size > 0 ? keys->size * 2 : 64,
		.n = keys->n,
		.hash_key = keys->size > 0 ? keys->hash_key : hash_key_new()};
	larger.slots = calloc_array(larger.size, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return false;
	for (size_t i = 0; i < keys->size; i++)
		if (keys->slots[i].number != 0)
			larger.slots[slot_of(&larger, keys->slots[i].key)] = keys->slots[i];
	free(keys->slots);
	*keys = larger;
	return true;
}

uint32_t keys_number(struct keys *keys, uint64_t key)
{
	if ((size_t)keys->n * 2 >= keys->size && !grow(keys))
		return KEYS_NONE;
	struct keys_slot *slot = &keys->slots[slot_of(keys, key)];
	if (slot->number == 0)
		*slot = (struct keys_slot){.key = key, .number = ++keys->n};
	return slot->number - 1;
}

uint32_t keys_find(const struct keys *keys, uint64_t key)
{
	return keys->size > 0 ? keys->slots[slot_of(keys, key)].number - 1 : KEYS_NONE;
}

void keys_finish(struct keys *keys)
{
	free(keys->slots);
	*keys = (struct keys){0};
}
