/* Regular pauses: a validation after each epoch or a checkpoint every 1000 steps adds other work between two steps,
 * every so many steps. A pause takes far longer than the scatter of the steps, and in contrast to a single outlier it
 * recurs regularly. */
#include "analysis/forecast/internal.h"

#include "base/util.h"

#include <string.h>

static const double MIN_EXCESS_STEPS = 2, MIN_EXCESS_DEVIATIONS = 8, T_975[] = {0, 12.7, 4.3, 3.2, 2.8, 2.6, 2.4};

struct weighted {
	double value, weight;
};

static int by_value(const void *a, const void *b)
{
	const struct weighted *x = a, *y = b;
	return (x->value > y->value) - (x->value < y->value);
}

static double weighted_median(struct weighted *values, size_t n)
{
	double all = 0, below = 0;
	qsort(values, n, sizeof(*values), by_value);
	for (size_t i = 0; i < n; i++)
		all += values[i].weight;
	for (size_t i = 0; i < n; i++) {
		below += values[i].weight;
		if (below >= all / 2)
			return values[i].value;
	}
	return (double)NAN;
}

double interval_median_rate(const struct interval *intervals, size_t n)
{
	struct weighted rates[FORECAST_POINTS];
	for (size_t i = 0; i < n; i++)
		rates[i] = (struct weighted){intervals[i].amount / intervals[i].steps, intervals[i].steps};
	return weighted_median(rates, n);
}

// Median deviation of the stretches from the usual duration of their steps, scaled to a normal standard deviation.
static double usual_deviation(const struct interval *times, size_t n, double rate)
{
	struct weighted away[FORECAST_POINTS];
	for (size_t i = 0; i < n; i++)
		away[i] = (struct weighted){fabs(times[i].amount - rate * times[i].steps), 1};
	return 1.4826 * weighted_median(away, n);
}

static struct pauses find_long_intervals(const struct interval *times, size_t n)
{
	struct pauses pauses = {0};
	double rate = interval_median_rate(times, n);
	double least = fmax(MIN_EXCESS_STEPS * rate, MIN_EXCESS_DEVIATIONS * usual_deviation(times, n, rate));
	for (size_t i = 0; i < n; i++) {
		if (times[i].amount - rate * times[i].steps <= least)
			continue;
		if (pauses.n == PAUSES_MAX || pauses.n > n / 4)
			return (struct pauses){0}; // too many to be exceptions
		pauses.at[pauses.n++] = (uint16_t)i;
	}
	return pauses;
}

/* The position of a pause within its stretch is unknown: two pauses 100 steps apart appear 100 ± the steps of a stretch
 * apart. */
static bool is_periodic(const struct pauses *pauses, const struct interval *times, double every, double begin)
{
	double before = begin;
	for (size_t i = 0; i < pauses->n; i++) {
		const struct interval *at = &times[pauses->at[i]];
		double slack = at->steps + (i > 0 ? times[pauses->at[i - 1]].steps : at->steps) - 1;
		bool is_first = i == 0 && isnan(begin); // can be anywhere before the second one
		if (is_first ? at->after > every + slack : fabs(at->after - before - every) > slack)
			return false;
		before = at->after;
	}
	return true;
}

struct pauses pauses_find(const struct interval *times, size_t n)
{
	struct pauses pauses = find_long_intervals(times, n);
	if (pauses.n == 0)
		return pauses;
	const struct interval *first = &times[pauses.at[0]], *last = &times[pauses.at[pauses.n - 1]];
	double done = times[n - 1].after + times[n - 1].steps;
	bool is_from_start = pauses.n <
		3; // too few to determine the phase: epochs are counted from the first step
	pauses.is_tentative = pauses.n == 1;
	pauses.every = is_from_start ? last->after / (double)pauses.n
				     : (last->after - first->after) / (double)(pauses.n - 1);
	pauses.last = last->after;
	bool goes_on = done <= pauses.last + pauses.every + last->steps;
	bool is_rare = pauses.every >= 4 * last->steps && pauses.every >= 4;
	if (!goes_on || !is_rare || !is_periodic(&pauses, times, pauses.every, is_from_start ? 0 : (double)NAN))
		pauses.n = 0;
	return pauses;
}

double pauses_to_come(const struct pauses *pauses, double all_steps)
{
	return pauses->n > 0 ? floor((all_steps - pauses->last) / pauses->every + 0.02) : 0;
}

static double t_975(size_t degrees)
{
	return degrees < ARRAY_SIZE(T_975) ? T_975[degrees] : 1.96 + 2.7 / (double)degrees;
}

struct estimate pauses_remove(const struct pauses *pauses, struct interval *intervals, size_t n, double to_come)
{
	double rate = interval_median_rate(intervals, n), mean = 0, squares = 0;
	for (size_t i = 0; i < pauses->n; i++) {
		struct interval *at = &intervals[pauses->at[i]];
		double excess = at->amount - rate * at->steps, before = mean;
		at->amount = rate * at->steps;
		mean += (excess - mean) / (double)(i + 1);
		squares += (excess - before) * (excess - mean);
	}
	if (pauses->n == 0)
		return (struct estimate){0};
	if (pauses->is_tentative)
		return (struct estimate){mean * to_come / 2, 0, mean * to_come};
	double variance = squares / (double)(pauses->n - 1);
	double half = t_975(pauses->n - 1) * sqrt(variance * (to_come + to_come * to_come / (double)pauses->n));
	return (struct estimate){mean * to_come, mean * to_come - half, mean * to_come + half};
}
