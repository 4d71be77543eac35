/* Intervals of medians and of ratios of medians: percentile bootstrap, seeded.
 *
 * From few values no resampling can make an interval wider than they are: n values hold the true median between the
 * least and the greatest with 1 - 2^(1-n), which is below 95 % for n < 6. bootstrap_confidence says which it is. */
#pragma once

#include "base/dice.h"

#include <stddef.h>
#include <stdint.h>

struct interval {
	double low, high;
};

// All values known and sorted. The interval is NaN for n < 2. -ENOMEM.
int bootstrap_median(const double *sorted, size_t n, uint64_t seed, struct interval *ret_interval);
// Of median(b) / median(a), both positive; NaN if a sample has fewer than 2 values or one that is not positive.
int bootstrap_ratio(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, uint64_t seed,
	struct interval *ret_interval);
double bootstrap_confidence(size_t n); // of bootstrap_median's interval, at most 0.95; NaN for n < 2

/* For who needs many intervals of samples of one size. The median of a resample is one value of the sorted sample, or
 * the mean of two, and which ones depends on the dice and on the size alone: they are drawn once. */
struct resample {
	uint32_t lower, upper; // places in the sorted sample; the same one where n is odd
};
// scratch: n of them.
void bootstrap_draw(struct dice *dice, size_t n, uint32_t *scratch, struct resample *ret_resamples, size_t n_resamples);
// Positive, sorted values; scratch: n_resamples of them.
struct interval bootstrap_ratio_of(const double *sorted_a, const struct resample *of_a, const double *sorted_b,
	const struct resample *of_b, size_t n_resamples, double *scratch);
