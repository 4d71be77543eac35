/* What a comparison could have shown: the smallest relative difference that runs which scatter like these ones would
 * have been told apart by, with a power of 80 %: p of the rank test below alpha, and 1 outside of the ratio's interval. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* In percent: b larger than a by so much. Sorted, known values; NaN if a value is not positive, if nothing scatters, or
 * if so few runs can't show anything at this alpha. -ENOMEM. */
int smallest_effect_percent(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, double alpha,
	uint64_t seed, double *ret_percent);
