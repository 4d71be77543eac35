/* Order of windows. A round measures the reference, then each limit still in question once in a new random order, and
 * the reference again, which the next round shares. So drift affects all limits alike, and the reference shows its
 * size. */
#include "cap/tune/internal.h"

#include "base/util.h"

#include <errno.h>

static size_t count_in_question(const struct tuner *tuner)
{
	size_t n = 0;
	for (size_t i = 0; i < tuner->n_limits; i++)
		n += tuner->limits[i].in_question;
	return n;
}

static void plan_round(struct tuner *tuner)
{
	tuner->n_round = tuner->at = 0;
	for (size_t i = 1; i < tuner->n_limits; i++)
		if (tuner->limits[i].in_question && (tuner->n_rounds == 0 || tune_has_time(tuner, i)))
			tuner->round[tuner->n_round++] = (uint32_t)i;
	if (tuner->n_round == 0)
		return;
	rng_shuffle(&tuner->rng, tuner->round, (uint32_t)tuner->n_round);
	if (tuner->n_rounds == 0) {
		memmove(tuner->round + 1, tuner->round, tuner->n_round * sizeof(*tuner->round));
		tuner->round[0] = 0;
		tuner->n_round++;
	}
	tuner->round[tuner->n_round++] = 0;
}

static void end_round(struct tuner *tuner)
{
	tuner->n_rounds++;
	tune_prune(tuner);
	tuner->n_round = 0;
	tuner->is_finished = tuner->n_rounds >= tune_rounds_planned(tuner) || count_in_question(tuner) < 2 ||
		!tune_has_time(tuner, 0);
	if (tuner->is_finished)
		return;
	plan_round(tuner);
	tuner->is_finished = tuner->n_round == 0;
}

static bool options_are_good(const struct tune_options *options)
{
	bool seconds_are = options->seconds > 0 && isfinite(options->seconds);
	bool bound_is = options->slowdown_percent >= 0 && isfinite(options->slowdown_percent);
	return seconds_are && (options->goal != TUNE_SLOWDOWN || bound_is);
}

static bool limits_are_good(const double *limits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(limits[i] > 0 && isfinite(limits[i])) || (i > 0 && !(limits[i] < limits[i - 1])))
			return false;
	return n >= 2;
}

int tuner_new(const struct tune_options *options, const double *limits, size_t n, struct tuner **ret_tuner)
{
	if (!options_are_good(options) || !limits_are_good(limits, n))
		return -EINVAL;
	if (!seed_model_is_linked())
		return -ENOSYS;
	struct tuner *tuner = calloc(1, sizeof(*tuner));
	if (tuner == NULL)
		return -ENOMEM;
	*tuner = (struct tuner){.options = *options,
		.n_limits = n,
		.n_candidates = n,
		.rng = rng_init(options->seed, 1)};
	tuner->limits = calloc_array(2 * n, sizeof(*tuner->limits));
	tuner->round = calloc_array(2 * n + 1, sizeof(*tuner->round));
	if (tuner->limits == NULL || tuner->round == NULL) {
		tuner_free(tuner);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		tuner->limits[i] = (struct tune_limit){.limit = limits[i], .index = i, .in_question = true};
	plan_round(tuner);
	*ret_tuner = tuner;
	return 0;
}

void tuner_free(struct tuner *tuner)
{
	if (tuner == NULL)
		return;
	free(tuner->windows);
	free(tuner->round);
	free(tuner->limits);
	free(tuner);
}

bool tuner_next(struct tuner *tuner, size_t *ret_limit, double *ret_seconds)
{
	if (tuner->is_finished)
		return false;
	size_t limit = tuner->round[tuner->at];
	*ret_limit = tuner->limits[limit].index;
	*ret_seconds = 0;
	if (!tuner->options.whole_runs)
		*ret_seconds = tuner->n_rounds == 0 ? tune_window_s(tuner) : fmin(tune_window_s(tuner), tune_left_s(tuner, limit));
	return true;
}

// Index of the limit with the caller's index; n_limits: none.
static size_t index_of(const struct tuner *tuner, size_t index)
{
	size_t position = 0;
	while (position < tuner->n_limits && tuner->limits[position].index != index)
		position++;
	return position;
}

double tuner_limit(const struct tuner *tuner, size_t index)
{
	size_t position = index_of(tuner, index);
	return position < tuner->n_limits ? tuner->limits[position].limit : (double)NAN;
}

static bool counts(const struct tune_window *window)
{
	const double figures[] = {window->steps, window->energy_j, window->time_s};
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		if (!(figures[i] > 0 && isfinite(figures[i])))
			return false;
	double energy_j = window->energy_j / window->steps, time_s = window->time_s / window->steps;
	return isnormal(energy_j) && isnormal(time_s);
}

// Inserts in the order of at_s. Without memory the window is dropped, as if it had not been measured.
static void keep(struct tuner *tuner, struct tune_window window)
{
	struct tune_window *windows = array_reserve(tuner->windows, tuner->n_windows, &tuner->windows_capacity,
		sizeof(*windows), 64);
	if (windows == NULL)
		return;
	tuner->windows = windows;
	if (!isfinite(window.at_s))
		window.at_s = tuner->n_windows > 0 ? windows[tuner->n_windows - 1].at_s + window.time_s : 0;
	size_t at = tuner->n_windows++;
	for (; at > 0 && windows[at - 1].at_s > window.at_s; at--)
		windows[at] = windows[at - 1];
	windows[at] = window;
	tuner->limits[window.limit].n_windows++;
}

/* Duration of the rest of this round and of later rounds for the limits still in question, limited by their seconds. */
double tuner_seconds_left(const struct tuner *tuner)
{
	if (tuner->is_finished)
		return 0;
	size_t later = tune_rounds_planned(tuner) - tuner->n_rounds - 1;
	double sum = 0;
	for (size_t i = 0; i < tuner->n_limits; i++) {
		double expected = tune_expected_s(tuner, i), now = 0;
		for (size_t at = tuner->at; at < tuner->n_round; at++)
			now += tuner->round[at] == i;
		double most = fmax(tune_left_s(tuner, i) - now * expected, 0);
		sum += now * expected;
		if (tuner->limits[i].in_question || i == 0)
			sum += fmin((double)later * expected,
				tuner->options.whole_runs ? floor(most / expected) * expected : most);
	}
	return sum;
}

static double share_done(const struct tuner *tuner)
{
	double used = 0, left = tuner_seconds_left(tuner);
	for (size_t i = 0; i < tuner->n_limits; i++)
		used += tuner->limits[i].used_s;
	if (left <= 0)
		return 1;
	if (!isfinite(used))
		return 1;
	return used > 0 ? used / (used + left) : 0;
}

void tuner_add(struct tuner *tuner, const struct tune_window *window)
{
	struct tune_window kept = *window;
	kept.limit = index_of(tuner, window->limit);
	if (kept.limit == tuner->n_limits)
		return;
	struct tune_limit *limit = &tuner->limits[kept.limit];
	limit->n_tried++;
	if (window->time_s > 0 && isfinite(window->time_s))
		limit->used_s += window->time_s;
	if (counts(window))
		keep(tuner, kept);
	if (!tuner->is_finished && tuner->round[tuner->at] == kept.limit && ++tuner->at == tuner->n_round)
		end_round(tuner);
	tuner->progress = fmax(tuner->progress, share_done(tuner));
}

double tuner_progress(const struct tuner *tuner)
{
	return tuner->progress;
}
