/* Sums of figures that may be anything: a damaged file has them from nobody, a stranger's from whom he likes. */
#pragma once

#include "base/util.h"

// Of two values; unknown if one is, or if there is no such number: figures of a stranger's file may be anything.
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

// What is left of `all` beside a part of it, at least nothing.
static inline int64_t value_rest(int64_t all, int64_t part)
{
	int64_t rest = value_difference(all, part);
	return rest > 0 || !value_ok(rest) ? rest : 0;
}
