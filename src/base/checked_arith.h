/* Sums of unchecked figures: those of a damaged or hostile file may have any value. */
#pragma once

#include "base/util.h"

// Sum of two values; unknown if one of them is, or on overflow.
static inline int64_t value_sum(int64_t a, int64_t b)
{
	int64_t sum;
	return value_ok(a) && value_ok(b) && !__builtin_add_overflow(a, b, &sum) ? sum : VALUE_MISSING;
}

static inline int64_t value_difference(int64_t a, int64_t b)
{
	int64_t difference;
	return value_ok(a) && value_ok(b) && !__builtin_sub_overflow(a, b, &difference) ? difference : VALUE_MISSING;
}

// `all` minus a part of it, at least 0.
static inline int64_t value_minus_parts(int64_t all, int64_t part)
{
	int64_t rest = value_difference(all, part);
	return rest > 0 || !value_ok(rest) ? rest : 0;
}
