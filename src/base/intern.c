#include "base/intern.h"

#include "base/util.h"

#include <errno.h>

enum { FIRST_SLOTS = 64 };

void intern_init(struct intern *intern, struct arena *arena)
{
	*intern = (struct intern){.arena = arena};
}

void intern_finish(struct intern *intern)
{
	free(intern->keys);
	free(intern->slots);
	*intern = (struct intern){0};
}

static uint32_t hash_of(const struct intern *intern, const void *bytes, size_t size)
{
	return (uint32_t)keyed_hash(&intern->key, bytes, size);
}

static bool equal(const struct intern_key *key, const void *bytes, size_t size, uint32_t hash)
{
	return key->hash == hash && key->size == size && memcmp(key->bytes, bytes, size) == 0;
}

// Returns the slot of the key, or the free slot for it.
static uint32_t *find(const struct intern *intern, const void *bytes, size_t size, uint32_t hash)
{
	size_t i = hash & (intern->n_slots - 1);
	while (intern->slots[i] != 0 && !equal(&intern->keys[intern->slots[i] - 1], bytes, size, hash))
		i = (i + 1) & (intern->n_slots - 1);
	return &intern->slots[i];
}

static int grow(struct intern *intern)
{
	size_t n_slots = intern->n_slots > 0 ? intern->n_slots * 2 : FIRST_SLOTS;
	if (intern->n_slots == 0)
		intern->key = hash_key_new();
	uint32_t *slots = calloc_array(n_slots, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < intern->n; k++) {
		size_t i = intern->keys[k].hash & (n_slots - 1);
		while (slots[i] != 0)
			i = (i + 1) & (n_slots - 1);
		slots[i] = (uint32_t)k + 1;
	}
	free(intern->slots);
	intern->slots = slots;
	intern->n_slots = n_slots;
	return 0;
}

static int64_t add(struct intern *intern, const void *bytes, size_t size, uint32_t hash)
{
	struct intern_key *keys = array_reserve(intern->keys, intern->n, &intern->capacity, sizeof(*keys), 64);
	if (keys == NULL)
		return -ENOMEM;
	intern->keys = keys;
	char *copy = size < UINT32_MAX && intern->n < UINT32_MAX - 1 ? arena_alloc(intern->arena, size + 1, 1) : NULL;
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, bytes, size);
	keys[intern->n] = (struct intern_key){copy, (uint32_t)size, hash};
	return (int64_t)intern->n++;
}

int64_t intern_number(struct intern *intern, const void *bytes, size_t size)
{
	if (intern->n * 2 >= intern->n_slots && grow(intern) < 0)
		return -ENOMEM;
	uint32_t hash = hash_of(intern, bytes, size);
	uint32_t *slot = find(intern, bytes, size, hash);
	if (*slot != 0)
		return *slot - 1;
	int64_t number = add(intern, bytes, size, hash);
	if (number >= 0)
		*slot = (uint32_t)number + 1;
	return number;
}

int64_t intern_find(const struct intern *intern, const void *bytes, size_t size)
{
	if (intern->n_slots == 0)
		return -ENOENT;
	uint32_t slot = *find(intern, bytes, size, hash_of(intern, bytes, size));
	return slot != 0 ? (int64_t)slot - 1 : -ENOENT;
}
