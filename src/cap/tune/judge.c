/* Which limits stay in question after a round. */
#include "cap/tune/estimate.h"
#include "cap/tune/tuner.h"

#include "base/util.h"

// Of the objective's logarithm: two limits that differ by less are equally good.
static const double EQUAL = 0.005;

struct judged {
	const struct estimate *estimate;
	double time_exponent, noise, t;
};

// At least so much is a's figure above b's: the lower end of the difference's interval.
static double surely_above(const struct judged *judged, size_t a, size_t b)
{
	double difference = estimate_log(judged->estimate, a, judged->time_exponent) -
		estimate_log(judged->estimate, b, judged->time_exponent);
	return difference - judged->t * sqrt(judged->noise * estimate_shape_of_difference(judged->estimate, a, b));
}

static struct judged judged_make(const struct estimate *estimate, double noise, double time_exponent)
{
	return (struct judged){estimate, time_exponent, noise, t_quantile(estimate->degrees)};
}

static bool is_measured(const struct estimate *estimate, size_t limit)
{
	return !isnan(estimate->log[TUNE_E][limit]);
}

static void judge_objective(struct tuner *tuner, const struct estimate *estimate)
{
	double k = tune_time_exponent(tuner->options.goal);
	struct judged judged = judged_make(estimate, estimate_noise(estimate, k), k);
	size_t best = tuner->n_limits;
	for (size_t i = 0; i < tuner->n_limits; i++)
		if (is_measured(estimate, i) &&
			(best == tuner->n_limits || estimate_log(estimate, i, k) < estimate_log(estimate, best, k)))
			best = i;
	for (size_t i = 0; i < tuner->n_limits; i++)
		if (i != best && is_measured(estimate, i) && surely_above(&judged, i, best) > -EQUAL)
			tuner->limits[i].in_question = false;
}

void tune_judge(struct tuner *tuner)
{
	struct arena *arena = arena_new();
	struct estimate estimate;
	if (arena != NULL && tuner->n_windows > 0 &&
		estimate_make(tuner->windows, tuner->n_windows, tuner->n_limits, arena, &estimate) == 0 &&
		estimate.degrees > 0 && is_measured(&estimate, 0))
		judge_objective(tuner, &estimate);
	arena_free(arena);
}
