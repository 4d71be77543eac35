/* The names that a recording has met, each once, with a number. Bounded, whatever programs do: at most 65,536 different ones
 * of 16 MiB in all; every further name is one and the same, "(more than 65536 names)". */
#pragma once

#include "base/keyed_hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_TABLE_MOST = 65536, NAME_TABLE_BYTES = 16 << 20 };

struct name_table {
	const char **texts; // owned array; number -> text, owned by the chunks; valid until name_table_finish
	uint32_t n, capacity;
	uint32_t *slots; // owned: open-addressed hash -> number + 1; 0 empty
	uint32_t n_slots;
	struct name_chunk *chunks; // owned list of the texts' memory
	size_t n_bytes;
	struct hash_key key;
	bool is_full; // some name had to become "(more than …)"
};

int name_table_init(struct name_table *table); // -ENOMEM
void name_table_finish(struct name_table *table);
/* The number of a name of `length` bytes, which need not end in NUL. What is no UTF-8 becomes U+FFFD, control characters
 * become blanks, no name at all "(unnamed)": what comes out can be printed and stored anywhere. */
uint32_t name_table_add(struct name_table *table, const char *bytes, size_t length);
static inline const char *name_table_text(const struct name_table *table, uint32_t name)
{
	return name < table->n ? table->texts[name] : NULL;
}
