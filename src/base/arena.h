/* Memory pool of one short-lived object (a loaded run, its findings), freed as a whole. */
#pragma once

#include <stddef.h>

struct arena;

struct arena *arena_new(void);                                 // NULL: no memory
void arena_free(struct arena *arena);                          // NULL allowed
void *arena_alloc(struct arena *arena, size_t n, size_t size); // zeroed array, overflow-checked; NULL: no memory
char *arena_text(struct arena *arena, const char *text);       // copy; NULL for NULL
size_t arena_bytes(const struct arena *arena);                 // bytes allocated
// Not for floating-point numbers, whose format depends on the locale. NULL: no memory.
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
