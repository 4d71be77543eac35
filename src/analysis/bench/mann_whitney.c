#include "analysis/bench/mann_whitney.h"

#include "analysis/bench/order.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>

/* Ranks are doubled so that the mean rank of equal values is an integer too. */
struct ranking {
	size_t n_a, n_b;
	uint32_t *doubled; // owned: n_a + n_b entries, ascending
	uint64_t sum_a;    // of the doubled ranks of a
	double ties;       // sum of t^3 - t over groups of t equal values
};

/* Walks both sorted samples together, one distinct value at a time. */
static void rank(struct ranking *ranking, const double *a, const double *b)
{
	size_t at_a = 0, at_b = 0;
	while (at_a + at_b < ranking->n_a + ranking->n_b) {
		size_t before_a = at_a, before = at_a + at_b;
		bool from_a = at_b == ranking->n_b || (at_a < ranking->n_a && a[at_a] <= b[at_b]);
		double value = from_a ? a[at_a] : b[at_b];
		while (at_a < ranking->n_a && a[at_a] <= value)
			at_a++;
		while (at_b < ranking->n_b && b[at_b] <= value)
			at_b++;
		size_t after = at_a + at_b;
		uint32_t doubled = (uint32_t)(before + 1 + after);
		for (size_t i = before; i < after; i++)
			ranking->doubled[i] = doubled;
		ranking->sum_a += (uint64_t)doubled * (at_a - before_a);
		double equal = (double)(after - before);
		ranking->ties += equal * equal * equal - equal;
	}
}

/* ways[k * (limit + 1) + s]: the number of ways in which k of the ascending ranks add up to s. Ranks are added one at a
 * time; a set of k contains the new rank or not. Descending k and s use only numbers from before the new rank. */
static double *count_ways(const uint32_t *ranks, size_t n, size_t n_chosen, size_t limit)
{
	size_t stride = limit + 1;
	double *ways = calloc_array((n_chosen + 1) * stride, sizeof(*ways));
	if (ways == NULL)
		return NULL;
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1 < n_chosen ? i + 1 : n_chosen; k > 0; k--) {
			const double *without = ways + (k - 1) * stride;
			double *with = ways + k * stride;
			size_t most = k * ranks[i] < limit ? k * ranks[i]
							   : limit; // none of the k ranks exceeds this one
			for (size_t s = most; s >= ranks[i]; s--)
				with[s] += without[s - ranks[i]];
		}
	return ways;
}

static int exact_p(const struct ranking *ranking, double *ret_p)
{
	size_t n = ranking->n_a + ranking->n_b, limit = n * (n + 1);
	bool swapped = ranking->n_b < ranking->n_a; // choosing the smaller sample needs less counting
	size_t n_chosen = swapped ? ranking->n_b : ranking->n_a;
	size_t sum = swapped ? limit - (size_t)ranking->sum_a : (size_t)ranking->sum_a;
	wattle_cleanup_free double *ways = count_ways(ranking->doubled, n, n_chosen, limit);
	if (ways == NULL)
		return -ENOMEM;
	// The mean of the sums is n_chosen (n + 1), an integer, so distances from it compare exactly.
	size_t mean = n_chosen * (n + 1), distance = sum > mean ? sum - mean : mean - sum;
	const double *row = ways + n_chosen * (limit + 1);
	double all = 0, as_far = 0;
	for (size_t s = 0; s <= limit; s++) {
		all += row[s];
		as_far += (s > mean ? s - mean : mean - s) >= distance ? row[s] : 0;
	}
	*ret_p = as_far / all;
	return 0;
}

static double normal_p(const struct ranking *ranking, double u)
{
	double a = (double)ranking->n_a, b = (double)ranking->n_b, n = a + b;
	double deviation = sqrt(a * b / 12 * (n + 1 - ranking->ties / (n * (n - 1))));
	double distance = fmax(fabs(u - a * b / 2) - 0.5, 0);
	return deviation > 0 ? erfc(distance / deviation / sqrt(2)) : 1;
}

int mann_whitney(const double *sorted_a, size_t n_a, const double *sorted_b, size_t n_b,
	struct mann_whitney *ret_result)
{
	*ret_result = (struct mann_whitney){(double)NAN, (double)NAN, false};
	if (n_a == 0 || n_b == 0)
		return 0;
	wattle_cleanup_free uint32_t *doubled = calloc_array(n_a + n_b, sizeof(*doubled));
	if (doubled == NULL)
		return -ENOMEM;
	struct ranking ranking = {.n_a = n_a, .n_b = n_b, .doubled = doubled};
	rank(&ranking, sorted_a, sorted_b);
	double a = (double)n_a, b = (double)n_b;
	struct mann_whitney result = {
		.u = a * b + a * (a + 1) / 2 - (double)ranking.sum_a / 2,
		.exact = n_a + n_b <= MANN_WHITNEY_EXACT,
	};
	int r = result.exact ? exact_p(&ranking, &result.p) : 0;
	if (!result.exact)
		result.p = normal_p(&ranking, result.u);
	if (r == 0)
		*ret_result = result;
	return r;
}

/* Without ties the distribution of U is symmetric; it is that of the sums of n_b of the ranks 1 … n, minus the smallest
 * sum. */
int mann_whitney_min_u(size_t n_a, size_t n_b, double alpha, size_t *ret_u)
{
	size_t n = n_a + n_b, most = n_a * n_b, min_sum = n_b * (n_b + 1) / 2, limit = min_sum + most;
	uint32_t ranks[MANN_WHITNEY_EXACT];
	assert(n <= MANN_WHITNEY_EXACT);
	for (size_t i = 0; i < n; i++)
		ranks[i] = (uint32_t)(i + 1);
	wattle_cleanup_free double *ways = count_ways(ranks, n, n_b, limit);
	if (ways == NULL)
		return -ENOMEM;
	const double *by_u = ways + n_b * (limit + 1) + min_sum; // 0 … most
	double all = 0, as_far = 0;
	for (size_t u = 0; u <= most; u++)
		all += by_u[u];
	size_t least = most + 1;
	for (; least > 0; least--) {
		as_far += by_u[least - 1];
		if (2 * as_far / all >= alpha)
			break;
	}
	*ret_u = least;
	return 0;
}

int holm_adjust(double *p, size_t n)
{
	wattle_cleanup_free double *sorted = calloc_array(n, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	size_t known = 0;
	for (size_t i = 0; i < n; i++)
		if (!isnan(p[i]))
			sorted[known++] = p[i];
	order_sort(sorted, known);
	for (size_t i = 0; i < n; i++) {
		double least = 0; // adjusted values must not decrease with increasing p
		for (size_t k = 0; k < known && sorted[k] <= p[i]; k++)
			least = fmax(least, fmin(1, sorted[k] * (double)(known - k)));
		p[i] = isnan(p[i]) ? p[i] : least;
	}
	return 0;
}
