#include "analysis/bootstrap.h"

#include "analysis/order.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>

enum { RESAMPLES = 4000 };

// Which value stands at a place of what was drawn.
static double value_at(const uint32_t *drawn, const double *sorted, size_t n, size_t place)
{
	size_t seen = 0;
	for (size_t i = 0; i < n; i++) {
		seen += drawn[i];
		if (seen > place)
			return sorted[i];
	}
	return sorted[n - 1];
}

// As many values as there are, drawn with replacement; counting them sorts them.
static double drawn_median(struct bootstrap *bootstrap, const double *sorted, size_t n)
{
	uint32_t *drawn = bootstrap->drawn;
	memset(drawn, 0, n * sizeof(*drawn));
	for (size_t i = 0; i < n; i++)
		drawn[dice_below(&bootstrap->dice, (uint32_t)n)]++;
	double upper = value_at(drawn, sorted, n, n / 2);
	return n % 2 == 1 ? upper : (value_at(drawn, sorted, n, n / 2 - 1) + upper) / 2;
}

static struct interval middle(const struct bootstrap *bootstrap)
{
	size_t n = bootstrap->n_resamples, cut = n / 40; // 2.5 % on either side
	return (struct interval){
		order_select(bootstrap->figures, n, cut),
		order_select(bootstrap->figures, n, n - 1 - cut),
	};
}

static struct interval median_within(struct bootstrap *bootstrap, const double *sorted, size_t n)
{
	for (size_t i = 0; i < bootstrap->n_resamples; i++)
		bootstrap->figures[i] = drawn_median(bootstrap, sorted, n);
	return middle(bootstrap);
}

struct interval bootstrap_ratio_within(struct bootstrap *bootstrap, const double *sorted_a, size_t n_a,
	const double *sorted_b, size_t n_b)
{
	for (size_t i = 0; i < bootstrap->n_resamples; i++) {
		double median_a = drawn_median(bootstrap, sorted_a, n_a);
		bootstrap->figures[i] = drawn_median(bootstrap, sorted_b, n_b) / median_a;
	}
	return middle(bootstrap);
}

int bootstrap_median(const double *sorted, size_t n, uint64_t seed, struct interval *ret_interval)
{
	*ret_interval = (struct interval){(double)NAN, (double)NAN};
	if (n < 2)
		return 0;
	wattle_cleanup_free uint32_t *drawn = calloc_array(n, sizeof(*drawn));
	wattle_cleanup_free double *figures = calloc_array(RESAMPLES, sizeof(*figures));
	if (drawn == NULL || figures == NULL)
		return -ENOMEM;
	struct bootstrap bootstrap = {drawn, figures, RESAMPLES, dice_make(seed, 0)};
	*ret_interval = median_within(&bootstrap, sorted, n);
	return 0;
}

int bootstrap_ratio(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, uint64_t seed,
	struct interval *ret_interval)
{
	*ret_interval = (struct interval){(double)NAN, (double)NAN};
	if (n_a < 2 || n_b < 2 || !(sorted_a[0] > 0) || !(sorted_b[0] > 0))
		return 0;
	wattle_cleanup_free uint32_t *drawn = calloc_array(n_a > n_b ? n_a : n_b, sizeof(*drawn));
	wattle_cleanup_free double *figures = calloc_array(RESAMPLES, sizeof(*figures));
	if (drawn == NULL || figures == NULL)
		return -ENOMEM;
	struct bootstrap bootstrap = {drawn, figures, RESAMPLES, dice_make(seed, 0)};
	*ret_interval = bootstrap_ratio_within(&bootstrap, sorted_a, n_a, sorted_b, n_b);
	return 0;
}

double bootstrap_confidence(size_t n)
{
	if (n < 2)
		return (double)NAN;
	return fmin(0.95, 1 - 2 * pow(0.5, (double)n));
}
