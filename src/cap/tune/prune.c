/* Decides after each round which limits stay candidates. */
#include "cap/tune/internal.h"

#include "base/util.h"

// After the first round, the noise is known from only two windows of the reference, which may agree by chance.
enum { MIN_DEGREES = 3 };

// Difference of the log objective below which two limits count as equally good.
static const double EQUAL = 0.005;

// One quantity or objective, as a log, with its noise.
struct prune_result {
	const struct estimate *estimate;
	double by_quantity[TUNE_QUANTITIES]; // coefficients of log E and log T
	double noise, t;
};

static bool is_measured(const struct estimate *estimate, size_t limit)
{
	return !isnan(estimate->log[TUNE_E][limit]);
}

static struct prune_result objective_to_prune(const struct estimate *estimate, double k)
{
	return (struct prune_result){estimate, {1, k}, estimate_noise(estimate, k), t_quantile(estimate->degrees)};
}

static struct prune_result time_to_prune(const struct estimate *estimate)
{
	return (struct prune_result){estimate, {0, 1}, estimate->noise[TUNE_T][TUNE_T], t_quantile(estimate->degrees)};
}

static double figure(const struct prune_result *judged, size_t limit)
{
	double sum = 0;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		sum += judged->by_quantity[q] * judged->estimate->log[q][limit];
	return sum;
}

// Lower and upper end of the confidence interval of a's value minus b's.
static double min_above(const struct prune_result *judged, size_t a, size_t b)
{
	double half = judged->t * sqrt(judged->noise * estimate_shape_of_difference(judged->estimate, a, b));
	return figure(judged, a) - figure(judged, b) - half;
}

static double max_above(const struct prune_result *judged, size_t a, size_t b)
{
	return -min_above(judged, b, a);
}

// The limit with the lowest value among those in `named`; n: none.
static size_t best_of(const struct prune_result *judged, size_t n, const bool *named)
{
	size_t best = n;
	for (size_t i = 0; i < n; i++)
		if (named[i] && (best == n || figure(judged, i) < figure(judged, best)))
			best = i;
	return best;
}

static void leave_out_worse(struct tuner *tuner, const struct prune_result *judged, size_t best)
{
	for (size_t i = 0; i < tuner->n_limits; i++)
		if (i != best && is_measured(judged->estimate, i) && min_above(judged, i, best) > -EQUAL)
			tuner->limits[i].in_question = false;
}

static void prune_by_objective(struct tuner *tuner, const struct estimate *estimate, bool *named)
{
	struct prune_result judged = objective_to_prune(estimate, tune_time_exponent(tuner->options.goal));
	for (size_t i = 0; i < tuner->n_limits; i++)
		named[i] = is_measured(estimate, i);
	leave_out_worse(tuner, &judged, best_of(&judged, tuner->n_limits, named));
}

/* Excludes limits that are certainly too slow, and those that certainly need more energy than the best of the certainly
 * allowed ones. The limits next to the crossing of the bound stay on both sides, because the curve of T is interpolated
 * there. */
static void prune_by_bound(struct tuner *tuner, const struct estimate *estimate, bool *named)
{
	struct prune_result energy = objective_to_prune(estimate, 0), time = time_to_prune(estimate);
	double bound = log1p(tuner->options.slowdown_percent / 100);
	size_t lowest_allowed = 0, highest_slow = tuner->n_limits;
	for (size_t i = 0; i < tuner->n_limits; i++) {
		named[i] = i == 0 || (is_measured(estimate, i) && max_above(&time, i, 0) <= bound);
		if (named[i])
			lowest_allowed = i;
	}
	for (size_t i = tuner->n_limits; i-- > 1;)
		if (is_measured(estimate, i) && i > lowest_allowed && min_above(&time, i, 0) > bound)
			highest_slow = i;
	size_t best = best_of(&energy, tuner->n_limits, named);
	leave_out_worse(tuner, &energy, best);
	for (size_t i = 1; i < tuner->n_limits; i++)
		if (i > highest_slow)
			tuner->limits[i].in_question = false;
	bool edge_matters = lowest_allowed == best || min_above(&energy, lowest_allowed, best) <= -EQUAL;
	if (highest_slow < tuner->n_limits && edge_matters)
		tuner->limits[highest_slow].in_question = tuner->limits[lowest_allowed].in_question = true;
}

void tune_prune(struct tuner *tuner)
{
	struct arena *arena = arena_new();
	bool *named = arena != NULL ? arena_alloc(arena, tuner->n_limits, sizeof(*named)) : NULL;
	struct estimate estimate;
	if (named != NULL && tuner->n_windows > 0 &&
		estimate_make(tuner->windows, tuner->n_windows, tuner->n_limits, arena, &estimate) == 0 &&
		estimate.degrees >= MIN_DEGREES && is_measured(&estimate, 0)) {
		(tuner->options.goal == TUNE_SLOWDOWN ? prune_by_bound : prune_by_objective)(tuner, &estimate, named);
		if (tuner->options.adds_limits)
			tune_refine(tuner, &estimate);
	}
	arena_free(arena);
}
