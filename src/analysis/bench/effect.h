/* Sensitivity of a comparison: the smallest relative difference that runs with the same scatter would show with a power
 * of 80 %, that is, p of the rank test below alpha, and 1 outside of the ratio's interval. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* In percent by which b is larger than a. Sorted, known values; NaN if a value is not positive, if there is no scatter,
 * or if so few runs can't be significant at this alpha. -ENOMEM. */
int smallest_effect_percent(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, double alpha,
	uint64_t seed, double *ret_percent);
