#include "analysis/bench/bench.h"

#include "analysis/bench/bootstrap.h"
#include "analysis/bench/effect.h"
#include "analysis/bench/mann_whitney.h"
#include "analysis/bench/order.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>

static const double ALPHA = 0.05;

const char *const bench_quantity_names[] = {
	[BENCH_TIME] = "time_s",
	[BENCH_ENERGY] = "energy_j",
	[BENCH_POWER] = "power_w",
	[BENCH_TARGET_ENERGY] = "target_energy_j",
	[BENCH_QUANTITIES] = NULL,
};

struct sorted {
	double *values; // known values only
	size_t n;
};

static struct sorted sort_known(const double *values, size_t n, double *out)
{
	struct sorted sorted = {.values = out};
	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			out[sorted.n++] = values[i];
	order_sort(out, sorted.n);
	return sorted;
}

static int estimate(const struct sorted *sorted, uint64_t seed, struct bench_estimate *ret_estimate)
{
	struct interval interval;
	int r = bootstrap_median(sorted->values, sorted->n, seed, &interval);
	*ret_estimate = (struct bench_estimate){
		.n = sorted->n,
		.median = order_median(sorted->values, sorted->n),
		.low = interval.low,
		.high = interval.high,
		.confidence = bootstrap_confidence(sorted->n),
	};
	return r;
}

// A separate seed for each estimate.
static uint64_t seed_of(uint64_t seed, size_t a, size_t b, enum bench_quantity quantity)
{
	return seed + ((uint64_t)a << 40) + ((uint64_t)b << 8) + (uint64_t)quantity;
}

static int compare(struct bench_comparison *comparison, const struct sorted *a, const struct sorted *b, double alpha,
	uint64_t seed)
{
	struct mann_whitney test;
	struct interval interval;
	int r = mann_whitney(a->values, a->n, b->values, b->n, &test);
	if (r == 0)
		r = bootstrap_ratio(a->values, a->n, b->values, b->n, seed, &interval);
	if (r == 0)
		r = smallest_effect_percent(a->values, a->n, b->values, b->n, alpha, seed,
			&comparison->smallest_effect_percent);
	if (r < 0)
		return r;
	double median_a = order_median(a->values, a->n);
	comparison->ratio = median_a > 0 ? order_median(b->values, b->n) / median_a : (double)NAN;
	comparison->low = interval.low;
	comparison->high = interval.high;
	comparison->p = test.p;
	return 0;
}

struct work {
	struct sorted (*sorted)[BENCH_QUANTITIES]; // one per command
	uint64_t seed;
	bool all_pairs;
	struct bench_findings *findings;
};

static void add_comparison(struct work *work, size_t a, size_t b, enum bench_quantity quantity)
{
	if (work->sorted[a][quantity].n > 0 && work->sorted[b][quantity].n > 0)
		work->findings->comparisons[work->findings->n_comparisons++] = (struct bench_comparison){.a = a,
			.b = b,
			.quantity = quantity};
}

static size_t count_pairs(size_t n_commands, bool all_pairs)
{
	return all_pairs ? n_commands * (n_commands - 1) / 2 : n_commands - 1;
}

static void list_pairs(struct work *work, enum bench_quantity quantity)
{
	for (size_t a = 0; a < (work->all_pairs ? work->findings->n_commands : 1); a++)
		for (size_t b = a + 1; b < work->findings->n_commands; b++)
			add_comparison(work, a, b, quantity);
}

static int correct_differences(struct bench_comparison *comparisons, size_t n)
{
	wattle_cleanup_free double *p = calloc_array(n, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		p[i] = comparisons[i].p;
	int r = holm_adjust(p, n);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct bench_comparison *c = &comparisons[i];
		c->p_adjusted = p[i];
		c->different = p[i] < ALPHA && (c->low > 1 || c->high < 1);
	}
	return r;
}

/* All comparisons of one quantity. The smallest detectable effect is computed for the strictest of Holm's steps, so
 * that it does not depend on the other comparisons. */
static int compare_quantity(struct work *work, enum bench_quantity quantity)
{
	size_t first = work->findings->n_comparisons;
	list_pairs(work, quantity);
	size_t n = work->findings->n_comparisons - first;
	struct bench_comparison *comparisons = work->findings->comparisons + first;
	for (size_t i = 0; i < n; i++) {
		struct bench_comparison *c = &comparisons[i];
		int r = compare(c, &work->sorted[c->a][quantity], &work->sorted[c->b][quantity], ALPHA / (double)n,
			seed_of(work->seed, c->a + 1, c->b + 1, quantity));
		if (r < 0)
			return r;
	}
	return correct_differences(comparisons, n);
}

static int sort_all(struct work *work, const struct bench_series *series)
{
	struct bench_findings *findings = work->findings;
	for (size_t c = 0; c < findings->n_commands; c++)
		for (size_t q = 0; q < BENCH_QUANTITIES; q++) {
			double *buffer = arena_alloc(findings->arena, series[c].n, sizeof(*buffer));
			if (buffer == NULL)
				return -ENOMEM;
			work->sorted[c][q] = sort_known(series[c].values[q], series[c].n, buffer);
			int r = estimate(&work->sorted[c][q], seed_of(work->seed, 0, c, (enum bench_quantity)q),
				&findings->estimates[c][q]);
			if (r < 0)
				return r;
		}
	return 0;
}

static int analyse(const struct bench_series *series, struct work *work)
{
	struct bench_findings *findings = work->findings;
	size_t n = findings->n_commands;
	findings->arena = arena_new();
	if (findings->arena == NULL)
		return -ENOMEM;
	work->sorted = arena_alloc(findings->arena, n, sizeof(*work->sorted));
	findings->estimates = arena_alloc(findings->arena, n, sizeof(*findings->estimates));
	findings->comparisons = arena_alloc(findings->arena, count_pairs(n, work->all_pairs) * BENCH_QUANTITIES,
		sizeof(*findings->comparisons));
	if (work->sorted == NULL || findings->estimates == NULL || findings->comparisons == NULL)
		return -ENOMEM;
	int r = sort_all(work, series);
	for (size_t q = 0; q < BENCH_QUANTITIES && r == 0; q++)
		r = compare_quantity(work, (enum bench_quantity)q);
	return r;
}

int bench_analyse(const struct bench_series *series, size_t n_commands, bool all_pairs, uint64_t seed,
	struct bench_findings *ret_findings)
{
	*ret_findings = (struct bench_findings){.n_commands = n_commands};
	struct work work = {.seed = seed, .all_pairs = all_pairs, .findings = ret_findings};
	int r = analyse(series, &work);
	if (r < 0)
		bench_findings_finish(ret_findings);
	return r;
}

void bench_findings_finish(struct bench_findings *findings)
{
	arena_free(findings->arena);
	*findings = (struct bench_findings){0};
}

static bool all_known(const struct bench_series *series, size_t n_commands, enum bench_quantity quantity)
{
	for (size_t c = 0; c < n_commands; c++)
		for (size_t i = 0; i < series[c].n; i++)
			if (isnan(series[c].values[quantity][i]))
				return false;
	return true;
}

int bench_width_percent(const struct bench_series *series, size_t n_commands, uint64_t seed, double *ret_percent)
{
	enum bench_quantity quantity = all_known(series, n_commands, BENCH_ENERGY) ? BENCH_ENERGY : BENCH_TIME;
	double widest = 0;
	for (size_t c = 0; c < n_commands; c++) {
		wattle_cleanup_free double *buffer = calloc_array(series[c].n, sizeof(*buffer));
		if (buffer == NULL)
			return -ENOMEM;
		struct sorted sorted = sort_known(series[c].values[quantity], series[c].n, buffer);
		struct bench_estimate e;
		int r = estimate(&sorted, seed_of(seed, 0, c, quantity), &e);
		if (r < 0)
			return r;
		double percent = 100 * (e.high - e.low) / 2 / e.median;
		widest = fmax(widest, isfinite(percent) ? percent : (double)INFINITY);
	}
	*ret_percent = widest;
	return 0;
}
