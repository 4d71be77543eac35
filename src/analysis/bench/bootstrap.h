/* Intervals of medians and of ratios of medians: percentile bootstrap, seeded.
 *
 * Resampling few values can't give an interval beyond their range: the true median of n values lies between the
 * smallest and the largest with probability 1 - 2^(1-n), below 95 % for n < 6. bootstrap_confidence returns the actual
 * level. */
#pragma once

#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>

struct interval {
	double low, high;
};

// `sorted` has no NaN. The interval is NaN for n < 2. -ENOMEM.
int bootstrap_median(const double *sorted, size_t n, uint64_t seed, struct interval *ret_interval);
// Interval of median(b) / median(a), both positive; NaN if a sample has fewer than 2 values or one that is not
// positive.
int bootstrap_ratio(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, uint64_t seed,
	struct interval *ret_interval);
double bootstrap_confidence(size_t n); // confidence level of bootstrap_median's interval, at most 0.95; NaN for n < 2

/* For callers that need many intervals of samples of one size. The median of a resample is one value of the sorted
 * sample, or the mean of two. Which ones depends only on the random numbers and the size, so they are drawn once. */
struct resample {
	uint32_t lower, upper; // indices in the sorted sample; equal if n is odd
};
// scratch: n entries.
void bootstrap_draw(struct rng *rng, size_t n, uint32_t *scratch, struct resample *ret_resamples, size_t n_resamples);
// Positive, sorted values; scratch: n_resamples entries.
struct interval bootstrap_ratio_of(const double *sorted_a, const struct resample *of_a, const double *sorted_b,
	const struct resample *of_b, size_t n_resamples, double *scratch);
