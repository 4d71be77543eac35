/* Binary search in an ordered array. Unlike bsearch() it also returns the insertion position of a missing key. Inline, so
 * that the compiler sees the comparison. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef bool search_before(const void *item, const void *key);

// Returns the first of n items that does not precede the key; n: none.
static inline __attribute__((always_inline)) size_t search_first(const void *items, size_t n, size_t size,
	const void *key, search_before *is_before)
{
	const unsigned char *bytes = items;
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (is_before(bytes + middle * size, key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline bool search_before_i64(const void *item, const void *key)
{
	return *(const int64_t *)item < *(const int64_t *)key;
}

static inline bool search_before_pid(const void *item, const void *key)
{
	return *(const pid_t *)item < *(const pid_t *)key;
}

// The same for ascending numbers.
static inline size_t search_i64(const int64_t *numbers, size_t n, int64_t key)
{
	return search_first(numbers, n, sizeof(*numbers), &key, search_before_i64);
}
