/* The objective has corners where a program starts to wait for its clocks, so its value between two candidates may be
 * far below both. Models can't predict this; only a window there shows it. So each round halves the gaps on both sides
 * of the best limit. */
#include "cap/tune/internal.h"

#include "base/util.h"

// Fraction of the reference: closer limits can hardly be distinguished.
static const double FINEST = 0.02;

// Minimum distance of a new limit from a known one, as a fraction of the gap, when searching for the crossing of the
// bound.
static const double MIN_PART = 0.25;

static void insert(struct tuner *tuner, size_t position, double value)
{
	struct tune_limit *at = &tuner->limits[position];
	memmove(at + 1, at, (tuner->n_limits - position) * sizeof(*at));
	*at = (struct tune_limit){.limit = value, .index = tuner->n_limits++, .in_question = true};
	for (size_t w = 0; w < tuner->n_windows; w++)
		tuner->windows[w].limit += tuner->windows[w].limit >= position;
}

// Adds a limit between the one at `above` and the next lower one; `part`: fraction of the way down.
static void add_between(struct tuner *tuner, size_t above, double part)
{
	if (above + 1 >= tuner->n_limits || tuner->n_limits >= 2 * tuner->n_candidates)
		return;
	double high = tuner->limits[above].limit, low = tuner->limits[above + 1].limit;
	if (high - low < 2 * FINEST * tuner->limits[0].limit || !tune_has_time_for_another(tuner))
		return;
	double value = high - part * (high - low), whole = round(value);
	if (whole > low && whole < high)
		value = whole;
	if (tuner->options.taken != NULL)
		value = tuner->options.taken(tuner->options.data, value);
	if (value > low && value < high)
		insert(tuner, above + 1, value);
}

// The lowest limit of the unbroken sequence from the reference down that keeps the bound.
static size_t last_allowed(const struct estimate *estimate, double bound)
{
	size_t last = 0;
	while (last + 1 < estimate->n && estimate->log[TUNE_T][last + 1] - estimate->log[TUNE_T][0] <= bound)
		last++;
	return last;
}

void tune_refine(struct tuner *tuner, const struct estimate *estimate)
{
	bool is_bound = tuner->options.goal == TUNE_SLOWDOWN;
	double k = tune_time_exponent(tuner->options.goal), bound = log1p(tuner->options.slowdown_percent / 100);
	size_t best = 0, last = is_bound ? last_allowed(estimate, bound) : estimate->n - 1;
	for (size_t i = 1; i <= last; i++)
		if (estimate_log(estimate, i, k) < estimate_log(estimate, best, k))
			best = i;
	double part = 0.5;
	if (is_bound && best == last && last + 1 < estimate->n) {
		const double *t = estimate->log[TUNE_T];
		part = (bound - (t[last] - t[0])) / (t[last + 1] - t[last]);
		part = fmin(fmax(part, MIN_PART), 1 - MIN_PART); // NaN (a limit without a window) becomes MIN_PART
	}
	add_between(tuner, best, part);
	if (best > 0)
		add_between(tuner, best - 1, 0.5);
}
