#include "analysis/forecast/parts.h"

#include "base/util.h"

#include <string.h>

enum quantity { TIME, ENERGY };

static double amount_of(const struct forecast_point *point, enum quantity quantity)
{
	return quantity == TIME ? point->time_s : point->energy_j;
}

static size_t make_stretches(const struct forecast_log *log, enum quantity quantity, struct stretch *out)
{
	for (size_t i = 0; i + 1 < log->n; i++) {
		const struct forecast_point *a = &log->points[i], *b = &log->points[i + 1];
		out[i] = (struct stretch){
			.after = (double)a->steps,
			.steps = (double)(b->steps - a->steps),
			.amount = amount_of(b, quantity) - amount_of(a, quantity),
		};
	}
	return log->n - 1;
}

static bool is_known(const struct forecast_log *log, enum quantity quantity, double now)
{
	bool known = isfinite(now);
	for (size_t i = 0; known && i < log->n; i++)
		known = isfinite(amount_of(&log->points[i], quantity));
	return known;
}

/* A part of the step that is under way has been done. One that takes longer than usual may take as long again: who hangs is
 * not about to end. */
static struct forecast_figure from_now(const struct outlook *sum, double rate, double since_last)
{
	double overdue = fmax(since_last - 2 * rate, 0);
	return (struct forecast_figure){
		.left = fmax(sum->mean - fmin(since_last, rate), 0),
		.low = fmax(sum->low - fmin(since_last, rate), 0),
		.high = fmax(sum->high - fmin(since_last, rate), 0) + overdue,
	};
}

static struct forecast_figure foresee(const struct forecast_log *log, enum quantity quantity,
	const struct pauses *pauses, int64_t all_steps, double now)
{
	const struct forecast_figure unknown = {(double)NAN, (double)NAN, (double)NAN};
	struct stretch stretches[FORECAST_POINTS];
	if (!is_known(log, quantity, now))
		return unknown;
	const struct forecast_point *last = &log->points[log->n - 1];
	size_t n = make_stretches(log, quantity, stretches);
	struct outlook of_pauses = pauses_take_out(pauses, stretches, n, pauses_to_come(pauses, (double)all_steps));
	struct outlook sum = rate_outlook(stretches, n, (double)(all_steps - last->steps));
	double below = hypot(sum.mean - sum.low, of_pauses.mean - of_pauses.low);
	double above = hypot(sum.high - sum.mean, of_pauses.high - of_pauses.mean);
	sum.mean += of_pauses.mean;
	sum.low = sum.mean - below;
	sum.high = sum.mean + above;
	return from_now(&sum, stretch_median_rate(stretches, n), fmax(now - amount_of(last, quantity), 0));
}

struct forecast forecast_make(const struct forecast_log *log, int64_t all_steps, struct forecast_point now)
{
	const struct forecast_figure unknown = {(double)NAN, (double)NAN, (double)NAN};
	struct forecast forecast = {unknown, unknown, 0};
	int64_t done = log->n > 0 ? log->points[log->n - 1].steps : 0;
	if (log->n < FORECAST_LEAST_STEPS || done >= all_steps)
		return forecast;
	struct stretch times[FORECAST_POINTS];
	size_t n = make_stretches(log, TIME, times);
	struct pauses pauses = pauses_find(times, n);
	forecast.time_s = foresee(log, TIME, &pauses, all_steps, now.time_s);
	forecast.energy_j = foresee(log, ENERGY, &pauses, all_steps, now.energy_j);
	forecast.pause_every = pauses.n > 0 ? llround(pauses.every) : 0;
	return forecast;
}
