#include "lib/cap.h"

#include "base/arena.h"
#include "base/util.h"

#include <errno.h>

static struct wattle_cap_interval interval(const struct tune_interval *from)
{
	return (struct wattle_cap_interval){from->value, from->low, from->high};
}

static struct wattle_cap_limit limit(const struct tune_limit_result *from)
{
	return (struct wattle_cap_limit){
		.size = sizeof(struct wattle_cap_limit),
		.limit = from->limit,
		.windows = from->n_windows,
		.steps = from->steps,
		.energy_j = from->energy_j,
		.time_s = from->time_s,
		.energy_per_step_j = interval(&from->energy_per_step_j),
		.time_per_step_s = interval(&from->time_per_step_s),
		.objective = interval(&from->objective),
		.allowed = from->is_allowed,
		.added = from->is_added,
	};
}

static int take_limits(struct wattle_cap_tune_result *result, const struct tune_result *found, struct arena *arena)
{
	size_t n = found->n_limits;
	struct wattle_cap_limit *rows = arena_alloc(arena, n, sizeof(*rows));
	result->limits = arena_alloc(arena, n + 1, sizeof(*result->limits));
	if (rows == NULL || result->limits == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		rows[i] = limit(&found->limits[i]);
		result->limits[i] = &rows[i];
	}
	result->n_limits = n;
	return 0;
}

static int take_model(struct wattle_cap_tune_result *result, const struct tune_result *found, struct arena *arena)
{
	result->parameters = arena_alloc(arena, ARRAY_SIZE(found->parameters), sizeof(double));
	if (result->parameters == NULL)
		return -ENOMEM;
	memcpy(result->parameters, found->parameters, sizeof(found->parameters));
	result->n_parameters = found->n_parameters;
	result->n_curve = found->n_curve;
	result->curve_limit = found->curve_x; // in the arena
	result->curve_objective = found->curve_y;
	(void)text_copy(result->model, sizeof(result->model), tune_model_name(found->model));
	return 0;
}

static int fill(const struct cap_search *search, struct arena *arena, struct wattle_cap_tune_result *result)
{
	struct tune_result found;
	int r = tuner_conclude(search->tuner, arena, &found);
	if (r < 0)
		return r;
	result->chosen = found.chosen;
	result->saving_percent = interval(&found.saving_percent);
	result->slowdown_percent = interval(&found.slowdown);
	result->chosen_range = interval(&found.chosen_range);
	result->residual_percent = found.residual_percent;
	result->noise_percent = found.noise_percent;
	result->drift_percent = found.drift_percent;
	(void)text_copy(result->objective, sizeof(result->objective), tune_goal_name(found.goal));
	(void)text_copy(result->objective_unit, sizeof(result->objective_unit), tune_goal_unit(found.goal));
	(void)text_copy(result->note, sizeof(result->note), found.note);
	r = take_model(result, &found, arena);
	return r < 0 ? r : take_limits(result, &found, arena);
}

int cap_search_result(const struct cap_search *search, double previous, struct wattle_cap_tune_result *ret_result,
	struct wattle_error *reterr)
{
	struct wattle_cap_tune_result result = {.size = ret_result->size, .previous = previous};
	struct arena *arena = arena_new();
	int r = arena != NULL ? fill(search, arena, &result) : -ENOMEM;
	if (r == -ENODATA)
		error_set(reterr, r,
			"the work ended after %llu steps, before two limits could be compared; give it more steps, "
			"or fewer seconds and limits",
			(unsigned long long)search->n_steps);
	if (r < 0) {
		arena_free(arena);
		return r;
	}
	result.memory = arena;
	memcpy(ret_result, &result, result.size < sizeof(result) ? result.size : sizeof(result));
	return 0;
}

void wattle_cap_tune_result_finish(struct wattle_cap_tune_result *result)
{
	if (result == NULL || result->memory == NULL)
		return;
	arena_free(result->memory);
	result->memory = NULL;
	result->limits = NULL;
	result->parameters = result->curve_limit = result->curve_objective = NULL;
	result->n_limits = result->n_parameters = result->n_curve = 0;
}
