#include "analysis/bench/bootstrap.h"

#include "analysis/bench/order.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>

enum { RESAMPLES = 4000 };

// The index of the value at position `place` of the sorted resample.
static uint32_t value_at(const uint32_t *drawn, size_t n, size_t place)
{
	size_t seen = 0;
	for (size_t i = 0; i < n; i++) {
		seen += drawn[i];
		if (seen > place)
			return (uint32_t)i;
	}
	return (uint32_t)(n - 1);
}

// Draws n values with replacement; counting them sorts them.
static struct resample draw_one(struct rng *rng, size_t n, uint32_t *drawn)
{
	memset(drawn, 0, n * sizeof(*drawn));
	for (size_t i = 0; i < n; i++)
		drawn[rng_below(rng, (uint32_t)n)]++;
	return (struct resample){value_at(drawn, n, (n - 1) / 2), value_at(drawn, n, n / 2)};
}

void bootstrap_draw(struct rng *rng, size_t n, uint32_t *scratch, struct resample *ret_resamples, size_t n_resamples)
{
	for (size_t i = 0; i < n_resamples; i++)
		ret_resamples[i] = draw_one(rng, n, scratch);
}

static double median_of(const double *sorted, struct resample resample)
{
	return (sorted[resample.lower] + sorted[resample.upper]) / 2;
}

// Leaves out 2.5 % on each side.
static struct interval middle(double *figures, size_t n)
{
	size_t cut = n / 40;
	return (struct interval){order_select(figures, n, cut), order_select(figures, n, n - 1 - cut)};
}

struct interval bootstrap_ratio_of(const double *sorted_a, const struct resample *of_a, const double *sorted_b,
	const struct resample *of_b, size_t n_resamples, double *scratch)
{
	for (size_t i = 0; i < n_resamples; i++)
		scratch[i] = median_of(sorted_b, of_b[i]) / median_of(sorted_a, of_a[i]);
	return middle(scratch, n_resamples);
}

int bootstrap_median(const double *sorted, size_t n, uint64_t seed, struct interval *ret_interval)
{
	*ret_interval = (struct interval){(double)NAN, (double)NAN};
	if (n < 2)
		return 0;
	wattle_cleanup_free uint32_t *drawn = calloc_array(n, sizeof(*drawn));
	wattle_cleanup_free struct resample *resamples = calloc_array(RESAMPLES, sizeof(*resamples));
	wattle_cleanup_free double *medians = calloc_array(RESAMPLES, sizeof(*medians));
	if (drawn == NULL || resamples == NULL || medians == NULL)
		return -ENOMEM;
	struct rng rng = rng_init(seed, 0);
	bootstrap_draw(&rng, n, drawn, resamples, RESAMPLES);
	for (size_t i = 0; i < RESAMPLES; i++)
		medians[i] = median_of(sorted, resamples[i]);
	*ret_interval = middle(medians, RESAMPLES);
	return 0;
}

int bootstrap_ratio(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, uint64_t seed,
	struct interval *ret_interval)
{
	*ret_interval = (struct interval){(double)NAN, (double)NAN};
	if (n_a < 2 || n_b < 2 || !(sorted_a[0] > 0) || !(sorted_b[0] > 0))
		return 0;
	wattle_cleanup_free uint32_t *drawn = calloc_array(n_a > n_b ? n_a : n_b, sizeof(*drawn));
	wattle_cleanup_free struct resample *resamples = calloc_array(2 * RESAMPLES, sizeof(*resamples));
	wattle_cleanup_free double *ratios = calloc_array(RESAMPLES, sizeof(*ratios));
	if (drawn == NULL || resamples == NULL || ratios == NULL)
		return -ENOMEM;
	struct rng rng = rng_init(seed, 0);
	bootstrap_draw(&rng, n_a, drawn, resamples, RESAMPLES);
	bootstrap_draw(&rng, n_b, drawn, resamples + RESAMPLES, RESAMPLES);
	*ret_interval = bootstrap_ratio_of(sorted_a, resamples, sorted_b, resamples + RESAMPLES, RESAMPLES, ratios);
	return 0;
}

double bootstrap_confidence(size_t n)
{
	if (n < 2)
		return (double)NAN;
	return fmin(0.95, 1 - 2 * pow(0.5, (double)n));
}
