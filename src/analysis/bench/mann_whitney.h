/* The rank test of Mann and Whitney (Wilcoxon), two-sided: do values of b tend to be larger or smaller than those of a?
 * It asks nothing of the distribution, and one wild value is one rank. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Up to so many values in both samples together the distribution is counted out, ties included: every way to hand the
 * ranks at hand to the two samples is equally likely. Above that the normal approximation with correction for ties and
 * for continuity. */
enum { MANN_WHITNEY_EXACT = 100 };

struct mann_whitney {
	double u; // pairs in which b is greater; equal ones count half
	double p; // chance of a U at least as far from its mean, if nothing differs; NaN if a sample is empty
	bool exact;
};

// All values known and sorted. -ENOMEM.
int mann_whitney(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b,
	struct mann_whitney *ret_result);
// The least U for which p < alpha where no values are equal, for at most MANN_WHITNEY_EXACT values; above n_a * n_b: so
// few can't show anything. -ENOMEM.
int mann_whitney_least_u(size_t n_a, size_t n_b, double alpha, size_t *ret_u);

/* Holm's correction: among n tests at once the chance of even one false find stays at alpha. Each p becomes the alpha at
 * which its find would stand; NaN (not tested) stays and does not count. -ENOMEM. */
int holm_adjust(double *p, size_t n);
