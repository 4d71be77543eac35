/* Statistics over slices of a series, exact to the last digits: sums are compensated, so that the order of millions of
 * values and a large common offset have no effect. Unknown values (NaN) are skipped; without a known value the result
 * is NaN. */
#pragma once

#include "analysis/findings.h"
#include "energy/slice.h"

struct value_stats series_stats(const double *values, const struct slice *slices, size_t n_slices);
