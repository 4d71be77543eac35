#include "analysis/forecast/internal.h"

#include "base/util.h"

#include <string.h>

enum quantity { TIME, ENERGY };

static const struct forecast_figure unknown = {(double)NAN, (double)NAN, (double)NAN};

static double amount_of(const struct forecast_point *point, enum quantity quantity)
{
	return quantity == TIME ? point->time_s : point->energy_j;
}

struct past { // the points in use
	const struct forecast_point *points;
	size_t n;
};

/* Energy can become known later than time. The first points are then skipped, if enough remain without them. */
static struct past choose_points(const struct forecast_log *log)
{
	size_t from = 0;
	while (from < log->n && isnan(log->points[from].energy_j))
		from++;
	from = log->n - from >= FORECAST_MIN_STEPS ? from : 0;
	return (struct past){log->points + from, log->n - from};
}

static size_t make_intervals(const struct past *past, enum quantity quantity, struct interval *out)
{
	for (size_t i = 0; i + 1 < past->n; i++) {
		const struct forecast_point *a = &past->points[i], *b = &past->points[i + 1];
		out[i] = (struct interval){
			.after = (double)a->steps,
			.steps = (double)(b->steps - a->steps),
			.amount = amount_of(b, quantity) - amount_of(a, quantity),
		};
	}
	return past->n - 1;
}

static bool is_known(const struct past *past, enum quantity quantity, double now)
{
	bool known = isfinite(now);
	for (size_t i = 0; known && i < past->n; i++)
		known = isfinite(amount_of(&past->points[i], quantity));
	return known;
}

/* Subtracts the part of the current step, or of a due pause after it, that is already done. Overdue time is added to
 * the upper limit: a program that hangs is unlikely to end soon. */
static struct forecast_figure remaining(const struct estimate *sum, double usual, double since_last)
{
	double done = fmin(since_last, usual), overdue = fmax(since_last - 2 * usual, 0);
	return (struct forecast_figure){
		.left = fmax(sum->mean - done, 0),
		.low = fmax(sum->low - done, 0),
		.high = fmax(sum->high - done, 0) + overdue,
	};
}

static struct estimate add_estimates(const struct estimate *a, const struct estimate *b)
{
	double mean = a->mean + b->mean;
	return (struct estimate){
		.mean = mean,
		.low = mean - hypot(a->mean - a->low, b->mean - b->low),
		.high = mean + hypot(a->high - a->mean, b->high - b->mean),
	};
}

static struct forecast_figure forecast_quantity(const struct past *past, enum quantity quantity,
	const struct pauses *pauses, int64_t all_steps, const struct forecast_point *now)
{
	struct interval intervals[FORECAST_POINTS];
	double amount_now = amount_of(now, quantity);
	if (!is_known(past, quantity, amount_now))
		return unknown;
	const struct forecast_point *last = &past->points[past->n - 1];
	bool is_newer = now->steps > last->steps; // more steps have ended since the last point, the last of them about now
	double done = (double)(is_newer ? now->steps : last->steps),
	       since_last = amount_now - amount_of(last, quantity);
	size_t n = make_intervals(past, quantity, intervals);
	double n_pauses = pauses_to_come(pauses, (double)all_steps);
	struct estimate of_pauses = pauses_remove(pauses, intervals, n, n_pauses);
	struct estimate of_steps = rate_estimate(intervals, n, (double)all_steps - done);
	struct estimate sum = pauses->n > 0 ? add_estimates(&of_steps, &of_pauses)
					    : unseen_add(&of_steps, done, (double)all_steps);
	bool is_due = n_pauses > 0 && done >= floor(pauses->last + pauses->every);
	double usual = interval_median_rate(intervals, n) + (is_due ? of_pauses.mean / n_pauses : 0);
	return remaining(&sum, usual, is_newer ? 0 : fmax(since_last, 0));
}

struct forecast forecast_make(const struct forecast_log *log, int64_t all_steps, struct forecast_point now)
{
	struct forecast forecast = {unknown, unknown, 0};
	bool is_early = log->n < FORECAST_MIN_STEPS;
	if (is_early || now.steps >= all_steps || log->points[log->n - 1].steps >= all_steps)
		return forecast;
	struct interval times[FORECAST_POINTS];
	const struct past past = choose_points(log);
	size_t n = make_intervals(&past, TIME, times);
	struct pauses pauses = pauses_find(times, n);
	forecast.time_s = forecast_quantity(&past, TIME, &pauses, all_steps, &now);
	forecast.energy_j = forecast_quantity(&past, ENERGY, &pauses, all_steps, &now);
	forecast.pause_every = pauses.n > 0 ? llround(pauses.every) : 0;
	return forecast;
}
