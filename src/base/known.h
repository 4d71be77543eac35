/* Figures of which some may be unknown. */
#pragma once

#include <math.h>

// A sum of what is known: NaN only while nothing is.
static inline double add_known(double sum, double part)
{
	if (isnan(part))
		return sum;
	return isnan(sum) ? part : sum + part;
}
