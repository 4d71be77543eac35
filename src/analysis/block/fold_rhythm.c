/* Many counters are updated by a clock of their own, a whole number of periods apart. A sampler that looks as often as the
 * counter is updated sees of each update only that it came since the last look, but all of them together leave few
 * grids: each bracket must hold an instant of the grid, and the energy must fit to the number of periods that passed.
 *
 * Sharp brackets, from the quick looks at the start and now and then, come first: those of the start leave a few
 * milliseconds of phase, and those half a minute later a few dozen periods, each a whole update apart. */
#include "analysis/block/fold_build.h"

#include "base/util.h"

enum { SHARP_MAX = 64, NEAR_UPDATES = 8 };
static const double tolerance_s = 1e-3;
static const double sharp_part = 0.125;                         // of a period
static const double period_off = 0.03, period_off_blind = 2e-4; // with sharp brackets, and without
// The period comes from a handful of quick looks, 1 or 2 ms apart: of a fast counter that is a large part.
static const double period_off_s = 1e-3, period_off_max = 0.15;
static const double energy_tolerance = 0.3; // of an update
static const double early_cost_max = 25, energy_cost_max = 10;
static const double doubtful_s = 5e-4, doubtful_part = 1.0 / 16; // of a period

struct search {
	const struct fold_updates *updates;
	size_t n;              // of them looked at
	const double *power_w; // around each
	size_t sharp[SHARP_MAX], n_sharp;
	double phase_s[RHYTHMS_MAX], period_s[RHYTHMS_MAX], cost[RHYTHMS_MAX];
	size_t n_best;
};

// The last instant of the grid before t_s.
static double grid_before_s(double phase_s, double period_s, double t_s)
{
	return phase_s + period_s * floor((t_s - phase_s) / period_s);
}

// Whether a reading came so near to an instant of the grid that the update it showed may be of this one or of the one before.
static bool is_doubtful(const struct fold_updates *u, size_t k, const struct fold_timing *grid)
{
	double near_s = fmin(doubtful_s, doubtful_part * grid->period_s);
	double periods = (u->t_s[k] + u->within_s[k] - grid->phase_s) / grid->period_s;
	return fabs(periods - rint(periods)) * grid->period_s < near_s;
}

static bool leaves_out(const struct fold_updates *u, const struct fold_timing *timing, size_t from, size_t to)
{
	size_t n = 0;
	for (size_t k = from; timing->regular && k < to; k++)
		n += is_doubtful(u, k, timing);
	return n * 4 < to - from && to - from - n > FOLD_EQUATIONS_MIN;
}

/* A counter and a recorder each come a little early or late. Where both meet, an update may be taken to have been a whole period from where
 * it was, and a few such are worse than all else that is unknown: times that are wrong all over then explain the energy as well as
 * the right ones do. So those have no time, and two intervals are one. But not where a recorder in step with the counter makes
 * all of them so. */
void fold_times(const struct fold_updates *updates, const struct fold_timing *timing, size_t from, size_t to,
	double *t_s)
{
	bool leave_out = leaves_out(updates, timing, from, to);
	double before_s = 0;
	for (size_t k = from; k > 0 && !(before_s > 0); k--)
		before_s = fmax(t_s[k - 1], 0); // of NaN: 0
	for (size_t k = from; k < to; k++) {
		t_s[k] = (double)NAN;
		if (leave_out && timing->regular && is_doubtful(updates, k, timing))
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

// How far the grid is from having an instant in an update's bracket.
static double early_cost(const struct search *search, double phase_s, double period_s, size_t update)
{
	const struct fold_updates *u = search->updates;
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
	const struct fold_updates *u = search->updates;
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

// Grids that are the same within the tolerance, at both ends.
static bool alike(const struct search *search, size_t a, double phase_s, double period_s)
{
	const struct fold_updates *u = search->updates;
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
		if (alike(search, i, phase_s, period_s)) {
			if (its_cost < search->cost[i])
				put(search, i, phase_s, period_s, its_cost);
			return;
		}
		worst = search->cost[i] > search->cost[worst] ? i : worst;
	}
	if (search->n_best < RHYTHMS_MAX)
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
	const struct fold_updates *u = search->updates;
	bool blind = search->n_sharp == 0; // a single one is worth much: a busy machine may look late at all others
	size_t anchor = blind ? 0 : search->sharp[0];
	double span_s = fmax(u->t_s[search->n - 1] - u->t_s[0], period_s);
	double step = 2 * tolerance_s / span_s, off = blind ? period_off_blind : period_off_by(period_s);
	double reach_s = blind ? period_s : 2 * u->within_s[anchor], high_s = u->t_s[anchor] + u->within_s[anchor];
	int periods = (int)(off / step), phases = (int)(reach_s / tolerance_s) + 1;
	for (int i = -periods; i <= periods; i++)
		for (int k = 0; k <= phases; k++) {
			double phase_s = high_s - reach_s * k / phases, try_s = period_s * (1 + i * step);
			if (sharp_cost(search, phase_s, try_s) < (double)search->n_sharp)
				keep(search, phase_s, try_s);
			else if (blind)
				keep(search, phase_s, try_s);
		}
}

// Mean power of the updates around each; of the time in which they were read.
static void powers_around(const struct fold_updates *u, size_t n, double *ret_w)
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

size_t fold_rhythms(const struct fold_updates *updates, double period_s, struct fold_timing *ret_timings)
{
	double power_w[FOLD_RHYTHM_UPDATES];
	struct search search = {.updates = updates, .power_w = power_w};
	search.n = updates->n < FOLD_RHYTHM_UPDATES ? updates->n : FOLD_RHYTHM_UPDATES;
	if (search.n < 2 || !(period_s > 0))
		return 0;
	powers_around(updates, search.n, power_w);
	list_sharp(&search, period_s);
	search_all(&search, period_s);
	for (size_t n = 0; n < search.n_best; n++) {
		size_t best = 0;
		for (size_t i = 0; i < search.n_best; i++)
			best = search.cost[i] < search.cost[best] ? i : best;
		ret_timings[n] = (struct fold_timing){.regular = true,
			.phase_s = search.phase_s[best],
			.period_s = search.period_s[best]};
		search.cost[best] = INFINITY;
	}
	return search.n_best;
}
