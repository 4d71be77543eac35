#include "cap/tune/internal.h"

#include "base/util.h"

#include <errno.h>

static struct tune_interval interval_of_log(double log_value, double half_width)
{
	return (struct tune_interval){exp(log_value), exp(log_value - half_width), exp(log_value + half_width)};
}

static int fill_limits(const struct tuner *tuner, const struct estimate *estimate, struct tune_result *result,
	struct arena *arena)
{
	double k = tune_time_exponent(tuner->options.goal), t = t_quantile(estimate->degrees);
	result->limits = arena_alloc(arena, tuner->n_limits, sizeof(*result->limits));
	if (result->limits == NULL)
		return -ENOMEM;
	size_t *row_of = arena_alloc(arena, tuner->n_limits, sizeof(*row_of));
	if (row_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < tuner->n_limits; i++) {
		if (tuner->limits[i].index >= tuner->n_candidates && tuner->limits[i].n_windows == 0)
			continue; // added, but the search ended before it was measured
		row_of[i] = result->n_limits;
		struct tune_limit_result *row = &result->limits[result->n_limits++];
		double shape = estimate_shape_of_difference(estimate, i, i);
		row->limit = tuner->limits[i].limit;
		row->n_windows = tuner->limits[i].n_windows;
		row->is_added = tuner->limits[i].index >= tuner->n_candidates;
		row->energy_per_step_j = interval_of_log(estimate->log[TUNE_E][i],
			t * sqrt(shape * estimate->noise[TUNE_E][TUNE_E]));
		row->time_per_step_s = interval_of_log(estimate->log[TUNE_T][i],
			t * sqrt(shape * estimate->noise[TUNE_T][TUNE_T]));
		row->objective = interval_of_log(estimate_log(estimate, i, k),
			t * sqrt(shape * estimate_noise(estimate, k)));
	}
	for (size_t w = 0; w < tuner->n_windows; w++) {
		struct tune_limit_result *row = &result->limits[row_of[tuner->windows[w].limit]];
		row->steps += tuner->windows[w].steps;
		row->energy_j += tuner->windows[w].energy_j;
		row->time_s += tuner->windows[w].time_s;
	}
	return 0;
}

static void fill_allowed(const struct figures *figures, struct tune_result *result)
{
	size_t last = figures->goal == TUNE_SLOWDOWN ? last_within_bound(figures) : figures->n_grid - 1, n = 0;
	for (size_t i = 0; i < result->n_limits; i++) {
		bool is_measured = n < figures->n && figures->limit[n] == result->limits[i].limit;
		result->limits[i].is_allowed = is_measured ? figures->grid_of[n] <= last
							   : figures->goal != TUNE_SLOWDOWN;
		n += is_measured;
	}
}

// The reference relative to itself, known without a measurement.
static const struct tune_interval none = {0, 0, 0};

static int fill_expected(const struct tuner *tuner, const struct figures *figures, const struct choice *choice,
	struct arena *arena, struct tune_result *result)
{
	double unknown = (double)NAN, chosen = figures->grid[choice->at];
	result->chosen = chosen;
	result->chosen_range = (struct tune_interval){chosen, unknown, unknown};
	result->saving_percent = result->slowdown = none;
	if (choice->at > 0) {
		double saving = -100 * expm1(figures_curve(figures, TUNE_E, choice->at));
		double slowdown = 100 * expm1(figures_curve(figures, TUNE_T, choice->at));
		result->saving_percent = (struct tune_interval){saving, unknown, unknown};
		result->slowdown = (struct tune_interval){slowdown, unknown, unknown};
	}
	return figures->degrees > 0 ? bootstrap_choice(figures, choice->at, tuner->options.seed, arena, result) : 0;
}

static int draw_curve(const struct figures *figures, const struct choice *choice, struct arena *arena,
	struct tune_result *result)
{
	if (choice->model.kind == TUNE_NO_MODEL)
		return 0;
	if (choice->model.kind != TUNE_SPLINE_MODEL)
		result->n_parameters = model_parameters(&choice->model, result->parameters);
	result->curve_x = arena_alloc(arena, figures->n_grid, sizeof(double));
	result->curve_y = arena_alloc(arena, figures->n_grid, sizeof(double));
	if (result->curve_x == NULL || result->curve_y == NULL)
		return -ENOMEM;
	result->n_curve = figures->n_grid;
	for (size_t g = 0; g < figures->n_grid; g++) {
		result->curve_x[g] = figures->grid[g];
		result->curve_y[g] = result->limits[0].objective.value * exp(choice_curve(figures, choice, g));
	}
	return 0;
}

static bool can_conclude(const struct tuner *tuner)
{
	size_t others = 0;
	for (size_t i = 1; i < tuner->n_limits; i++)
		others += tuner->limits[i].n_windows;
	return tuner->limits[0].n_windows > 0 && others > 0;
}

int tuner_conclude(const struct tuner *tuner, struct arena *arena, struct tune_result *ret_result)
{
	if (!can_conclude(tuner))
		return -ENODATA;
	struct estimate estimate;
	int r = estimate_make(tuner->windows, tuner->n_windows, tuner->n_limits, arena, &estimate);
	if (r < 0)
		return r;
	double k = tune_time_exponent(tuner->options.goal), unknown = (double)NAN;
	struct tune_result result = {.goal = tuner->options.goal,
		.slowdown_percent = tuner->options.slowdown_percent,
		.residual_percent = unknown,
		.noise_percent = 100 * sqrt(estimate_noise(&estimate, k)),
		.drift_percent = 100 * expm1(estimate.drift[TUNE_E] + k * estimate.drift[TUNE_T])};
	r = fill_limits(tuner, &estimate, &result, arena);
	if (r < 0)
		return r;
	double *limits = arena_alloc(arena, tuner->n_limits, sizeof(*limits));
	struct figures figures;
	for (size_t i = 0; i < tuner->n_limits; i++)
		limits[i] = tuner->limits[i].limit;
	r = figures_make(&estimate, limits, tuner->options.goal, tuner->options.slowdown_percent, arena, &figures);
	if (r < 0)
		return r;
	struct choice choice = choose(&figures, arena);
	result.model = choice.model.kind;
	result.residual_percent = 100 * choice.residual;
	text_copy(result.note, sizeof(result.note), choice.why);
	r = draw_curve(&figures, &choice, arena, &result);
	if (r < 0)
		return r;
	r = fill_expected(tuner, &figures, &choice, arena, &result);
	if (r < 0)
		return r;
	fill_allowed(&figures, &result);
	*ret_result = result;
	return 0;
}
