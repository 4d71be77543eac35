#include "analysis/names.h"

#include "base/keyed_hash.h"
#include "base/util.h"

#include <errno.h>

struct slot {
	const char *text; // NULL: free
	uint32_t number;
};

struct table {              // open addressing, never more than half full
	struct slot *slots; // owned
	size_t size, used;  // size: a power of two
	struct hash_key key;
};

static struct slot *find(const struct table *table, const char *text)
{
	size_t i = (size_t)keyed_hash(&table->key, text, strlen(text)) & (table->size - 1);
	while (table->slots[i].text != NULL && strcmp(table->slots[i].text, text) != 0)
		i = (i + 1) & (table->size - 1);
	return &table->slots[i];
}

static bool grow(struct table *table)
{
	struct table larger = {.size = table->size > 0 ? table->size * 2 : 64,
		.used = table->used,
		.key = table->size > 0 ? table->key : hash_key_new()};
	larger.slots = calloc_array(larger.size, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return false;
	for (size_t i = 0; i < table->size; i++)
		if (table->slots[i].text != NULL)
			*find(&larger, table->slots[i].text) = table->slots[i];
	free(table->slots);
	*table = larger;
	return true;
}

/* Rows that share a name usually share its pointer too, so recent pointers are cached and skip the lookup. */
struct recent {
	const char *text;
	uint32_t number;
};
enum { RECENT_SIZE = 256 };

static struct recent *find_recent(struct recent *recent, const char *text)
{
	uintptr_t bits = (uintptr_t)text;
	return &recent[(bits >> 3 ^ bits >> 11) % RECENT_SIZE];
}

// The number of a name in order of first appearance; -ENOMEM.
static int64_t number_of(struct table *table, const char *text)
{
	if (table->used * 2 >= table->size && !grow(table))
		return -ENOMEM;
	struct slot *slot = find(table, text);
	if (slot->text == NULL)
		*slot = (struct slot){.text = text, .number = (uint32_t)table->used++};
	return slot->number;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct slot *)a)->text, ((const struct slot *)b)->text);
}

static size_t pack(struct table *table)
{
	size_t n = 0;
	for (size_t i = 0; i < table->size; i++)
		if (table->slots[i].text != NULL)
			table->slots[n++] = table->slots[i];
	return n;
}

static int finish(struct table *table, size_t n_rows, struct arena *arena, struct names *names)
{
	names->n = pack(table);
	names->text = arena_alloc(arena, names->n, sizeof(*names->text));
	uint32_t *place = calloc_array(names->n, sizeof(*place));
	if (names->text == NULL || place == NULL) {
		free(place);
		return -ENOMEM;
	}
	if (names->n > 0)
		qsort(table->slots, names->n, sizeof(*table->slots), by_text);
	for (size_t k = 0; k < names->n; k++) {
		names->text[k] = table->slots[k].text;
		place[table->slots[k].number] = (uint32_t)k;
	}
	for (size_t i = 0; i < n_rows; i++)
		names->of[i] = place[names->of[i]];
	free(place);
	return 0;
}

int names_make(const char *const *first, size_t stride, size_t n_rows, struct arena *arena, struct names *ret_names)
{
	struct table table = {0};
	struct recent recent[RECENT_SIZE] = {{0}};
	struct names names = {.of = arena_alloc(arena, n_rows, sizeof(uint32_t))};
	int64_t number = names.of != NULL ? 0 : -ENOMEM;
	for (size_t i = 0; i < n_rows && number >= 0; i++) {
		const char *text = *(const char *const *)(const void *)((const char *)first + i * stride);
		struct recent *known = find_recent(recent, text);
		number = known->text == text ? known->number : number_of(&table, text);
		if (number >= 0)
			*known = (struct recent){text, (uint32_t)number};
		names.of[i] = (uint32_t)number;
	}
	int r = number < 0 ? -ENOMEM : finish(&table, n_rows, arena, &names);
	free(table.slots);
	if (r == 0)
		*ret_names = names;
	return r;
}
