/* Figures over many values; unknown ones (NaN, VALUE_MISSING) are left out, and nothing known gives NaN. */
#pragma once

#include "analysis/findings.h"

#include <math.h>

/* Adds values one by one: mean and standard deviation without a second pass (Welford), so that a large common offset
 * costs no digits. */
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
	if (delta == 0) // the sums below stay what they are
		return;
	tally->mean += delta / (double)tally->n;
	tally->squares += delta * (value - tally->mean);
}

struct value_stats tally_value_stats(const struct tally *tally); // std of the population
struct stats tally_stats(const struct tally *tally);

double *stats_unknown(struct arena *arena, size_t n); // n NaN; NULL: no memory

double stats_max(struct run_values values, size_t n); // NaN: none known

// The recording's own gauges, and the program's metrics by name (in arena memory). -ENOMEM.
void stats_run_metrics(const struct run *run, struct stats ret_stats[RUN_COUNT]);
int stats_user_metrics(const struct run *run, struct arena *arena, struct user_metric_finding **ret_metrics,
	size_t *ret_count);
