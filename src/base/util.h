/* Small utilities used by all modules. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* "Not available": the only value of int64 columns that is not a measurement. Never 0. */
#define VALUE_MISSING INT64_MIN

static inline bool value_ok(int64_t value)
{
	return value != VALUE_MISSING;
}

static inline double value_to_double(int64_t value, double scale)
{
	return value_ok(value) ? (double)value * scale : (double)NAN;
}

static inline double seconds_between(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) / 1e9;
}

static inline bool text_is_same(const char *a, const char *b) // a and b may be NULL
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static inline const char *text_or_null(const char *text) // for an array, where "" means "none"
{
	return text[0] != '\0' ? text : NULL;
}

// Copies as much as fits, always NUL-terminated; returns false if the text was truncated.
static inline bool text_copy(char *out, size_t size, const char *text)
{
	size_t length = strlen(text);
	bool fits = length < size;
	size_t n = fits ? length : size - 1;
	memcpy(out, text, n);
	out[n] = '\0';
	return fits;
}

// Allocates n * size with an overflow check; NULL on overflow or without memory.
static inline void *calloc_array(size_t n, size_t size)
{
	return calloc(n > 0 ? n : 1, size);
}

static inline void *realloc_array(void *old, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return realloc(old, bytes > 0 ? bytes : 1);
}

// Returns `old` with room for another item: unchanged, or doubled (`first` items at first). NULL: no memory; old is
// unchanged.
static inline void *array_reserve(void *old, size_t n, size_t *capacity, size_t size, size_t first)
{
	if (n < *capacity)
		return old;
	size_t doubled = *capacity > 0 ? *capacity * 2 : first;
	void *larger = realloc_array(old, doubled, size);
	if (larger != NULL)
		*capacity = doubled;
	return larger;
}
