/* The two-sided rank test of Mann and Whitney (Wilcoxon): do values of b tend to be larger or smaller than those of a?
 * It assumes no distribution, and an outlier counts as one rank. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Up to this number of values in both samples together the distribution is exact, ties included: every assignment of
 * the given ranks to the two samples is equally likely. Above it the normal approximation is used, with corrections for
 * ties and for continuity. */
enum { MANN_WHITNEY_EXACT = 100 };

struct mann_whitney {
	double u; // number of pairs in which b is greater; equal pairs count half
	double p; // probability of a U at least as far from its mean under the null hypothesis; NaN if a sample is empty
	bool exact;
};

// All values are known and sorted. -ENOMEM.
int mann_whitney(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b,
	struct mann_whitney *ret_result);
// The smallest U with p < alpha without ties, for at most MANN_WHITNEY_EXACT values; above n_a * n_b: no U is
// significant for so few values. -ENOMEM.
int mann_whitney_min_u(size_t n_a, size_t n_b, double alpha, size_t *ret_u);

/* Holm's correction: among n tests the probability of even one false positive stays at alpha. Each p becomes the
 * smallest alpha at which its test is significant; NaN (not tested) stays and does not count. -ENOMEM. */
int holm_adjust(double *p, size_t n);
