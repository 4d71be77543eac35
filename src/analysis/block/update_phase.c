/* Many counters are updated by a clock of their own, at multiples of a period. If readings are as frequent as updates,
 * each reading shows only that an update came since the previous reading. All readings together leave few possible
 * grids: each bracket must contain a grid instant, and the energy must agree with the number of periods.
 *
 * Narrow brackets, from the fast polling at the start and at times afterwards, are used first. Those of the start leave
 * a few milliseconds of phase; those half a minute later leave a few dozen candidate periods, one update apart from
 * each other. */
#include "analysis/block/deconvolve_internal.h"

#include "base/util.h"

enum { SHARP_MAX = 64, NEAR_UPDATES = 8 };
static const double tolerance_s = 1e-3;
static const double sharp_part = 0.125;                         // of a period
static const double period_off = 0.03,
		    period_off_without_phase = 2e-4; // relative error of the period, with narrow brackets and without
// The period was measured by a few fast polls, 1 or 2 ms apart, which is a large fraction of a short period.
static const double period_off_s = 1e-3, period_off_max = 0.15;
static const double energy_tolerance = 0.3; // relative to the energy of an update
static const double early_cost_max = 25, energy_cost_max = 10;
static const double uncertain_s = 5e-4, uncertain_part = 1.0 / 16; // of a period

struct search {
	const struct deconvolve_updates *updates;
	size_t n;              // number of updates used
	const double *power_w; // mean power around each update
	size_t sharp[SHARP_MAX], n_sharp;
	double phase_s[UPDATE_PHASE_CANDIDATES_MAX], period_s[UPDATE_PHASE_CANDIDATES_MAX],
		cost[UPDATE_PHASE_CANDIDATES_MAX];
	size_t n_best;
};

// The last grid instant before t_s.
static double grid_before_s(double phase_s, double period_s, double t_s)
{
	return phase_s + period_s * floor((t_s - phase_s) / period_s);
}

// Whether a reading is so close to a grid instant that its update can belong to this instant or to the previous one.
static bool is_uncertain(const struct deconvolve_updates *u, size_t k, const struct deconvolve_timing *grid)
{
	double near_s = fmin(uncertain_s, uncertain_part * grid->period_s);
	double periods = (u->t_s[k] + u->within_s[k] - grid->phase_s) / grid->period_s;
	return fabs(periods - rint(periods)) * grid->period_s < near_s;
}

static bool leaves_out(const struct deconvolve_updates *u, const struct deconvolve_timing *timing, size_t from,
	size_t to)
{
	size_t n = 0;
	for (size_t k = from; timing->regular && k < to; k++)
		n += is_uncertain(u, k, timing);
	return n * 4 < to - from && to - from - n > DECONVOLVE_EQUATIONS_MIN;
}

/* The clocks of counter and recorder jitter. Where a reading coincides with a grid instant, its update can be misplaced
 * by a whole period. A few such errors outweigh all others: wrong times then explain the energy as well as the right
 * ones do. Such updates therefore get no time, and their two intervals become one. The exception is a recorder in step
 * with the counter, for which all updates are like that. */
void deconvolve_times(const struct deconvolve_updates *updates, const struct deconvolve_timing *timing, size_t from,
	size_t to, double *t_s)
{
	bool leave_out = leaves_out(updates, timing, from, to);
	double before_s = 0;
	for (size_t k = from; k > 0 && !(before_s > 0); k--)
		before_s = fmax(t_s[k - 1], 0); // 0 for NaN
	for (size_t k = from; k < to; k++) {
		t_s[k] = (double)NAN;
		if (leave_out && timing->regular && is_uncertain(updates, k, timing))
			continue;
		double update_s = updates->t_s[k] + timing->part * updates->within_s[k];
		if (timing->regular)
			update_s = grid_before_s(timing->phase_s, timing->period_s,
				updates->t_s[k] + updates->within_s[k]);
		t_s[k] = fmin(fmax(update_s, before_s), updates->length_s);
		before_s = t_s[k];
	}
}

static double square(double x)
{
	return x * x;
}

// Cost of a grid without an instant in an update's bracket: squared distance in units of the tolerance, limited.
static double early_cost(const struct search *search, double phase_s, double period_s, size_t update)
{
	const struct deconvolve_updates *u = search->updates;
	double t_s = grid_before_s(phase_s, period_s, u->t_s[update] + u->within_s[update]);
	double early_s = fmax(u->t_s[update] - u->within_s[update] - t_s, 0);
	return fmin(square(early_s / tolerance_s), early_cost_max);
}

static double sharp_cost(const struct search *search, double phase_s, double period_s)
{
	double sum = 0;
	for (size_t i = 0; i < search->n_sharp; i++)
		sum += early_cost(search, phase_s, period_s, search->sharp[i]);
	return sum;
}

static double cost(const struct search *search, double phase_s, double period_s)
{
	const struct deconvolve_updates *u = search->updates;
	double sum = 0, before_s = 0;
	for (size_t k = 0; k < search->n; k++) {
		double t_s = grid_before_s(phase_s, period_s, u->t_s[k] + u->within_s[k]);
		sum += early_cost(search, phase_s, period_s, k);
		if (k > 0) {
			double expected_s = (u->j[k] - u->j[k - 1]) / search->power_w[k];
			double off = (expected_s - (t_s - before_s)) / period_s / energy_tolerance;
			sum += fmin(square(off), energy_cost_max);
		}
		before_s = t_s;
	}
	return sum;
}

// Whether two grids are equal within the tolerance, at both ends.
static bool are_similar(const struct search *search, size_t a, double phase_s, double period_s)
{
	const struct deconvolve_updates *u = search->updates;
	const size_t ends[] = {0, search->n - 1};
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		double t_s = u->t_s[ends[i]];
		double off_s = grid_before_s(search->phase_s[a], search->period_s[a], t_s) -
			grid_before_s(phase_s, period_s, t_s);
		if (fabs(remainder(off_s, period_s)) > 2 * tolerance_s)
			return false;
	}
	return true;
}

static void put(struct search *search, size_t at, double phase_s, double period_s, double cost)
{
	search->phase_s[at] = phase_s;
	search->period_s[at] = period_s;
	search->cost[at] = cost;
}

static void keep(struct search *search, double phase_s, double period_s)
{
	double its_cost = cost(search, phase_s, period_s);
	size_t worst = 0;
	for (size_t i = 0; i < search->n_best; i++) {
		if (are_similar(search, i, phase_s, period_s)) {
			if (its_cost < search->cost[i])
				put(search, i, phase_s, period_s, its_cost);
			return;
		}
		worst = search->cost[i] > search->cost[worst] ? i : worst;
	}
	if (search->n_best < UPDATE_PHASE_CANDIDATES_MAX)
		put(search, search->n_best++, phase_s, period_s, its_cost);
	else if (its_cost < search->cost[worst])
		put(search, worst, phase_s, period_s, its_cost);
}

static double period_off_by(double period_s)
{
	return fmin(fmax(period_off, period_off_s / period_s), period_off_max);
}

static void search_all(struct search *search, double period_s)
{
	const struct deconvolve_updates *u = search->updates;
	bool without_phase = search->n_sharp ==
		0; // one narrow bracket is enough: on a busy machine all other polls can be late
	size_t anchor = without_phase ? 0 : search->sharp[0];
	double span_s = fmax(u->t_s[search->n - 1] - u->t_s[0], period_s);
	double step = 2 * tolerance_s / span_s,
	       off = without_phase ? period_off_without_phase : period_off_by(period_s);
	double reach_s = without_phase ? period_s : 2 * u->within_s[anchor],
	       high_s = u->t_s[anchor] + u->within_s[anchor];
	int periods = (int)(off / step), phases = (int)(reach_s / tolerance_s) + 1;
	for (int i = -periods; i <= periods; i++)
		for (int k = 0; k <= phases; k++) {
			double phase_s = high_s - reach_s * k / phases, try_s = period_s * (1 + i * step);
			if (sharp_cost(search, phase_s, try_s) < (double)search->n_sharp)
				keep(search, phase_s, try_s);
			else if (without_phase)
				keep(search, phase_s, try_s);
		}
}

// Mean power over the updates around each one, by the times of their readings.
static void powers_around(const struct deconvolve_updates *u, size_t n, double *ret_w)
{
	for (size_t k = 0; k < n; k++) {
		size_t from = k > NEAR_UPDATES ? k - NEAR_UPDATES : 0;
		size_t to = k + NEAR_UPDATES < u->n ? k + NEAR_UPDATES : u->n - 1;
		double s = u->t_s[to] + u->within_s[to] - u->t_s[from] - u->within_s[from];
		ret_w[k] = fmax(u->j[to] - u->j[from], 1e-9) / fmax(s, 1e-9);
	}
}

static void list_sharp(struct search *search, double period_s)
{
	for (size_t k = 0; k < search->n && search->n_sharp < SHARP_MAX; k++)
		if (search->updates->within_s[k] <= sharp_part * period_s)
			search->sharp[search->n_sharp++] = k;
}

size_t update_phase_candidates(const struct deconvolve_updates *updates, double period_s,
	struct deconvolve_timing *ret_timings)
{
	double power_w[UPDATE_PHASE_UPDATES];
	struct search search = {.updates = updates, .power_w = power_w};
	search.n = updates->n < UPDATE_PHASE_UPDATES ? updates->n : UPDATE_PHASE_UPDATES;
	if (search.n < 2 || !(period_s > 0))
		return 0;
	powers_around(updates, search.n, power_w);
	list_sharp(&search, period_s);
	search_all(&search, period_s);
	for (size_t n = 0; n < search.n_best; n++) {
		size_t best = 0;
		for (size_t i = 0; i < search.n_best; i++)
			best = search.cost[i] < search.cost[best] ? i : best;
		ret_timings[n] = (struct deconvolve_timing){.regular = true,
			.phase_s = search.phase_s[best],
			.period_s = search.period_s[best]};
		search.cost[best] = INFINITY;
	}
	return search.n_best;
}
