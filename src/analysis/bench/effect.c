/* The scatter pools both samples, each value divided by the median of its sample. Samples of the given sizes are drawn
 * from it repeatedly. For each draw the smallest factor is found such that b, multiplied by it, is significantly
 * different from a. In the rank test, U reaches u exactly when the factor exceeds the u-th smallest of all a[i] / b[j];
 * the interval of the ratio excludes 1 when the factor exceeds 1 / low. The result is the 80th percentile of these
 * factors: four of five draws need no more. */
#include "analysis/bench/effect.h"

#include "analysis/bench/bootstrap.h"
#include "analysis/bench/mann_whitney.h"
#include "analysis/bench/order.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>

enum {
	DRAWS = 300,
	RESAMPLES = 200,
	ENOUGH = 50, // draws of larger samples have 50 values: the effect is scaled by the square root of the size
};

struct drawing {
	const double *pool; // each value divided by the median of its sample
	uint32_t n_pool;
	size_t n_a, n_b, least_u;
	double a[ENOUGH], b[ENOUGH];
	double ratios[ENOUGH * ENOUGH], factors[DRAWS];
	struct resample of_a[RESAMPLES], of_b[RESAMPLES];
};

static void pool(double *out, const double *sorted, size_t n)
{
	double median = order_median(sorted, n);
	for (size_t i = 0; i < n; i++)
		out[i] = sorted[i] / median;
}

static void draw(const struct drawing *drawing, struct rng *rng, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = drawing->pool[rng_below(rng, drawing->n_pool)];
	order_sort(out, n);
}

static double factor_for_ranks(struct drawing *drawing)
{
	size_t n = 0;
	for (size_t i = 0; i < drawing->n_a; i++)
		for (size_t j = 0; j < drawing->n_b; j++)
			drawing->ratios[n++] = drawing->a[i] / drawing->b[j];
	return order_select(drawing->ratios, n, drawing->least_u - 1);
}

static double factor_for_interval(const struct drawing *drawing)
{
	double ratios[RESAMPLES];
	return 1 / bootstrap_ratio_of(drawing->a, drawing->of_a, drawing->b, drawing->of_b, RESAMPLES, ratios).low;
}

// Two medians were fitted to the data, so the residuals scatter less than new data will.
static double correction(size_t n_a, size_t n_b, const struct drawing *drawing)
{
	double n = (double)(n_a + n_b);
	double sizes = 1 / (double)n_a + 1 / (double)n_b;
	double drawn = 1 / (double)drawing->n_a + 1 / (double)drawing->n_b;
	return sqrt(n / (n - 2)) * sqrt(sizes / drawn);
}

static double factor_of_four_in_five(struct drawing *drawing, uint64_t seed)
{
	uint32_t scratch[ENOUGH];
	struct rng rng = rng_init(seed, 0);
	bootstrap_draw(&rng, drawing->n_a, scratch, drawing->of_a, RESAMPLES);
	bootstrap_draw(&rng, drawing->n_b, scratch, drawing->of_b, RESAMPLES);
	for (size_t i = 0; i < DRAWS; i++) {
		draw(drawing, &rng, drawing->a, drawing->n_a);
		draw(drawing, &rng, drawing->b, drawing->n_b);
		drawing->factors[i] = fmax(factor_for_ranks(drawing), factor_for_interval(drawing));
	}
	return order_select(drawing->factors, DRAWS, DRAWS * 8 / 10);
}

int smallest_effect_percent(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b, double alpha,
	uint64_t seed, double *ret_percent)
{
	*ret_percent = (double)NAN;
	if (n_a < 2 || n_b < 2 || !(sorted_a[0] > 0) || !(sorted_b[0] > 0))
		return 0;
	wattle_cleanup_free struct drawing *drawing = calloc(1, sizeof(*drawing));
	wattle_cleanup_free double *values = calloc_array(n_a + n_b, sizeof(*values));
	if (drawing == NULL || values == NULL)
		return -ENOMEM;
	drawing->pool = values;
	drawing->n_pool = (uint32_t)(n_a + n_b);
	drawing->n_a = n_a < ENOUGH ? n_a : ENOUGH;
	drawing->n_b = n_b < ENOUGH ? n_b : ENOUGH;
	int r = mann_whitney_min_u(drawing->n_a, drawing->n_b, alpha, &drawing->least_u);
	if (r < 0 || drawing->least_u > drawing->n_a * drawing->n_b)
		return r;
	pool(values, sorted_a, n_a);
	pool(values + n_a, sorted_b, n_b);
	double shift = log(factor_of_four_in_five(drawing, seed)) * correction(n_a, n_b, drawing);
	if (shift > 0)
		*ret_percent = 100 * expm1(shift);
	return 0;
}
