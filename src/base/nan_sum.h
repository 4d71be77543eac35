/* Arithmetic on values that may be unknown. */
#pragma once

#include <math.h>

// Sum of the known values: NaN only if all are unknown.
static inline double nan_sum(double sum, double part)
{
	if (isnan(part))
		return sum;
	return isnan(sum) ? part : sum + part;
}
