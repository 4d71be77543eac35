/* The equation of an Einsum, with the size of each letter. */
#pragma once

#include "model/op.h"

enum {
	EINSUM_LETTERS = 52 + VALUE_RANK_MAX
}; // behind the letters: the dimensions that "..." stands for, last one last

struct einsum {
	int64_t sizes[EINSUM_LETTERS]; // VALUE_MISSING: not known
	uint64_t used;                 // letters of the inputs, one bit each
	uint64_t kept;                 // letters of the output
	int out_rank;
	unsigned char out[VALUE_RANK_MAX]; // letter of each dimension of the output
};

// false: the equation can't be followed, or an input's shape is not known.
bool einsum_read(const struct op *op, struct einsum *ret_sum);
