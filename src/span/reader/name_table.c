#include "span/reader/reader.h"

#include "base/util.h"
#include "span/ring.h"

#include <errno.h>

// Numbers of the two names that always exist.
enum { NAME_UNNAMED, NAME_FURTHER, NAMES_FIXED };
static const char *const fixed_names[NAMES_FIXED] = {"(unnamed)", "(more than 65536 names)"};

// An invalid UTF-8 byte becomes three bytes.
enum { CLEAN_BYTES_MAX = 3 * SPAN_NAME_BYTES_MAX, CHUNK_BYTES = 64 * 1024, SLOTS_FIRST = 256 };

struct name_chunk {
	struct name_chunk *next;
	size_t used;
	char bytes[CHUNK_BYTES];
};
static_assert((int)CHUNK_BYTES > (int)CLEAN_BYTES_MAX, "every name fits into a chunk");

/* ---- text ---- */

// Length of the well-formed UTF-8 sequence at `at`, 0 if there is none (Unicode, table 3-7).
static size_t sequence_length(const unsigned char *at, size_t n)
{
	if (at[0] < 0x80)
		return 1;
	size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (at[0] < 0xc2 || at[0] > 0xf4 || n < length)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
	bool beyond = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
	return overlong || beyond ? 0 : length;
}

static bool is_control(const unsigned char *at)
{
	return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

static size_t clean(const char *bytes, size_t length, char out[CLEAN_BYTES_MAX])
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t size = 0;
	while (length > 0) {
		size_t n = sequence_length(at, length);
		const char *shown = n == 0 ? "\xef\xbf\xbd" : is_control(at) ? " " : (const char *)at;
		size_t n_shown = n == 0 ? 3 : is_control(at) ? 1 : n;
		memcpy(out + size, shown, n_shown);
		size += n_shown;
		at += n > 0 ? n : 1;
		length -= n > 0 ? n : 1;
	}
	return size;
}

/* ---- table ---- */

// The slot of a text, or the free slot for it.
static uint32_t *find_slot(const struct name_table *table, const char *bytes, size_t length)
{
	uint32_t mask = table->n_slots - 1;
	for (uint32_t i = (uint32_t)keyed_hash(&table->key, bytes, length) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &table->slots[i];
		if (*slot == 0)
			return slot;
		const char *text = table->texts[*slot - 1];
		if (strncmp(text, bytes, length) == 0 && text[length] == '\0')
			return slot;
	}
}

static int grow_slots(struct name_table *table)
{
	if (table->n < table->n_slots / 2)
		return 0;
	uint32_t n_slots = table->n_slots > 0 ? 2 * table->n_slots : SLOTS_FIRST;
	uint32_t *larger = calloc_array(n_slots, sizeof(*larger));
	if (larger == NULL)
		return -ENOMEM;
	free(table->slots);
	table->slots = larger;
	table->n_slots = n_slots;
	for (uint32_t name = 0; name < table->n; name++)
		*find_slot(table, table->texts[name], strlen(table->texts[name])) = name + 1;
	return 0;
}

static int grow_texts(struct name_table *table)
{
	size_t capacity = table->capacity;
	const char **larger = array_reserve(table->texts, table->n, &capacity, sizeof(*larger), SLOTS_FIRST);
	if (larger == NULL)
		return -ENOMEM;
	table->texts = larger;
	table->capacity = (uint32_t)capacity;
	return 0;
}

static char *keep(struct name_table *table, const char *bytes, size_t length)
{
	struct name_chunk *chunk = table->chunks;
	if (chunk == NULL || CHUNK_BYTES - chunk->used < length + 1) {
		chunk = malloc(sizeof(*chunk));
		if (chunk == NULL)
			return NULL;
		chunk->used = 0;
		chunk->next = table->chunks;
		table->chunks = chunk;
	}
	char *text = chunk->bytes + chunk->used;
	memcpy(text, bytes, length);
	text[length] = '\0';
	chunk->used += length + 1;
	table->n_bytes += length + 1;
	return text;
}

static int append(struct name_table *table, const char *bytes, size_t length)
{
	if (grow_slots(table) < 0 || grow_texts(table) < 0)
		return -ENOMEM;
	char *text = keep(table, bytes, length);
	if (text == NULL)
		return -ENOMEM;
	*find_slot(table, bytes, length) = table->n + 1;
	table->texts[table->n++] = text;
	return 0;
}

int name_table_init(struct name_table *table)
{
	*table = (struct name_table){.key = hash_key_new()};
	for (size_t i = 0; i < ARRAY_SIZE(fixed_names); i++)
		if (append(table, fixed_names[i], strlen(fixed_names[i])) < 0) {
			name_table_finish(table);
			return -ENOMEM;
		}
	return 0;
}

void name_table_finish(struct name_table *table)
{
	for (struct name_chunk *chunk = table->chunks, *next; chunk != NULL; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(table->texts);
	free(table->slots);
	*table = (struct name_table){0};
}

uint32_t name_table_add(struct name_table *table, const char *bytes, size_t length)
{
	char text[CLEAN_BYTES_MAX];
	size_t size = clean(bytes, length < SPAN_NAME_BYTES_MAX ? length : SPAN_NAME_BYTES_MAX, text);
	if (size == 0)
		return NAME_UNNAMED;
	uint32_t found = *find_slot(table, text, size);
	if (found != 0)
		return found - 1;
	bool has_room = table->n < NAME_TABLE_MAX + NAMES_FIXED && table->n_bytes + size < NAME_TABLE_BYTES;
	if (has_room && append(table, text, size) == 0)
		return table->n - 1;
	table->is_full = true;
	return NAME_FURTHER;
}
