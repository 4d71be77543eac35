/* Statistics over many values. Unknown values (NaN, VALUE_MISSING) are skipped; without a known value the result is
 * NaN. */
#pragma once

#include "analysis/findings.h"

#include <math.h>

/* Accumulates values one at a time: mean and standard deviation in one pass (Welford), so that a large common offset
 * costs no precision. */
struct tally {
	int64_t n;
	double last, min, max, mean, squares, total;
};

static inline void tally_add(struct tally *tally, double value)
{
	if (isnan(value))
		return;
	tally->n++;
	tally->last = value;
	tally->total += value;
	if (tally->n == 1 || value < tally->min)
		tally->min = value;
	if (tally->n == 1 || value > tally->max)
		tally->max = value;
	double delta = value - tally->mean;
	if (delta == 0) // mean and squares do not change
		return;
	tally->mean += delta / (double)tally->n;
	tally->squares += delta * (value - tally->mean);
}

struct value_stats tally_value_stats(const struct tally *tally); // std of the population
struct stats tally_stats(const struct tally *tally);

double *stats_unknown(struct arena *arena, size_t n); // array of n NaN; NULL: no memory

double stats_max(struct run_values values, size_t n); // NaN: no known value

// Statistics of the recorder's own metrics, and of the program's custom metrics by name (in arena memory). -ENOMEM.
void stats_run_metrics(const struct run *run, struct stats ret_stats[RUN_COUNT]);
int stats_user_metrics(const struct run *run, struct arena *arena, struct user_metric_finding **ret_metrics,
	size_t *ret_count);
