/* The distinct names among many rows, numbered in alphabetical order. */
#pragma once

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct names {
	const char **text; // n of them, ascending; borrowed from the rows
	size_t n;
	uint32_t *of; // number of each row's name
};

// Row i's name is at (char *)first + i * stride. -ENOMEM.
int names_make(const char *const *first, size_t stride, size_t n_rows, struct arena *arena, struct names *ret_names);
