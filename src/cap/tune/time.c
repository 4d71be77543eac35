// Durations of windows and rounds, and whether enough time is left for them.
#include "cap/tune/internal.h"

#include "base/util.h"

size_t tune_rounds_planned(const struct tuner *tuner)
{
	if (tuner->options.whole_runs)
		return TUNE_ROUNDS_MAX;
	// Windows of 4 s average over enough steps and counter updates; further time is better spent on more windows,
	// which determine the noise. Below 16 s the windows are shortened, because only the third round can add limits
	// next to the best one.
	double windows = floor(tuner->options.seconds / 4);
	return (size_t)fmin(fmax(windows, TUNE_WINDOWS_MIN), TUNE_ROUNDS_MAX + 1) - 1;
}

// The reference has one window more than there are rounds, all within its `seconds`.
double tune_window_s(const struct tuner *tuner)
{
	return tuner->options.seconds / (double)(tune_rounds_planned(tuner) + 1);
}

// Windows end with a step, so they are longer than requested.
double tune_expected_s(const struct tuner *tuner, size_t limit)
{
	const struct tune_limit *known = &tuner->limits[limit];
	if (known->n_tried > 0)
		return fmax(known->used_s / (double)known->n_tried,
			tuner->options.whole_runs ? 0 : tune_window_s(tuner));
	if (!tuner->options.whole_runs)
		return tune_window_s(tuner);
	// The best estimate is a run under another limit; NaN without any run.
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < tuner->n_limits; i++) {
		sum += tuner->limits[i].used_s;
		n += tuner->limits[i].n_tried;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

double tune_left_s(const struct tuner *tuner, size_t limit)
{
	return fmax(tuner->options.seconds - tuner->limits[limit].used_s, 0);
}

// At least half a window must fit, and a run completely. The first round always runs.
bool tune_has_time(const struct tuner *tuner, size_t limit)
{
	double expected = tune_expected_s(tuner, limit);
	return tune_left_s(tuner, limit) >= (tuner->options.whole_runs ? expected : expected / 2);
}

// Maximum duration of the remaining rounds. Call between rounds.
static double planned_s(const struct tuner *tuner)
{
	double rounds = (double)(tune_rounds_planned(tuner) - tuner->n_rounds), sum = 0;
	for (size_t i = 0; i < tuner->n_limits; i++)
		if (i == 0 || tuner->limits[i].in_question)
			sum += fmin(rounds * tune_expected_s(tuner, i), tune_left_s(tuner, i));
	return sum;
}

bool tune_has_time_for_another(const struct tuner *tuner)
{
	double used = 0, windows = 0;
	for (size_t i = 0; i < tuner->n_limits; i++) {
		used += tuner->limits[i].used_s;
		windows += (double)tuner->limits[i].n_tried;
	}
	double another = used / windows, rounds = (double)(tune_rounds_planned(tuner) - tuner->n_rounds);
	double seconds = tuner->options.seconds, share = tuner->options.whole_runs ? 1 : 0.5;
	return seconds >= share * another &&
		used + planned_s(tuner) + fmin(rounds * another, seconds) <= (double)tuner->n_candidates * seconds;
}
