#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 16384, ALIGNMENT = 16 };

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

struct arena {
	struct block *blocks; // newest first; owned
	size_t bytes;         // sum over all blocks
};

struct arena *arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *arena)
{
	if (arena == NULL)
		return;
	while (arena->blocks != NULL) {
		struct block *next = arena->blocks->next;
		free(arena->blocks);
		arena->blocks = next;
	}
	free(arena);
}

void *arena_alloc(struct arena *arena, size_t n, size_t size)
{
	size_t bytes, rounded;
	if (__builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, ALIGNMENT - 1, &rounded))
		return NULL;
	rounded &= ~(size_t)(ALIGNMENT - 1);
	struct block *block = arena->blocks;
	if (block == NULL || block->size - block->used < rounded) {
		size_t capacity = rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE;
		size_t whole;
		if (__builtin_add_overflow(capacity, sizeof(*block), &whole))
			return NULL;
		block = calloc(1, whole); // large allocations come zeroed from the kernel
		if (block == NULL)
			return NULL;
		block->next = arena->blocks;
		block->size = capacity;
		arena->blocks = block;
		arena->bytes += whole;
	}
	void *start = block->bytes + block->used;
	block->used += rounded;
	return start;
}

size_t arena_bytes(const struct arena *arena)
{
	return arena->bytes;
}

char *arena_text(struct arena *arena, const char *text)
{
	if (text == NULL)
		return NULL;
	size_t size = strlen(text) + 1;
	char *copy = arena_alloc(arena, size, 1);
	if (copy != NULL)
		memcpy(copy, text, size);
	return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	char *text = length >= 0 ? arena_alloc(arena, (size_t)length + 1, 1) : NULL;
	if (text == NULL)
		return NULL;
	va_start(arguments, format);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}
