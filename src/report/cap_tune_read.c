/* What a search left in its run file, back into what it was made of: as far as a page shows it. */
#include "report/cap_tune.h"

#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

enum { REPORTS_MAX = 64, LIMITS_MAX = 1000, CURVE_MAX = 1000 };

// Pictures have room for figures of this world only: what lies far outside was made by no search.
static const double largest_limit = 1e6, furthest_from_reference = 1e3;

struct reader {
	struct arena *arena;
	bool failed; // no memory
};

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *text(struct reader *r, const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	const char *copy = arena_text(r->arena, value);
	r->failed |= value != NULL && copy == NULL;
	return copy;
}

static void *array(struct reader *r, size_t n, size_t size)
{
	void *made = arena_alloc(r->arena, n, size);
	r->failed |= made == NULL;
	return made;
}

static struct tune_interval interval(const json_t *object, const char *value, const char *low, const char *high)
{
	return (struct tune_interval){number(object, value), number(object, low), number(object, high)};
}

static bool is_goal(const json_t *object, enum tune_goal *ret_goal)
{
	const char *name = json_string_value(json_object_get(object, "objective"));
	for (enum tune_goal goal = TUNE_ED2P; name != NULL && goal <= TUNE_SLOWDOWN; goal++) {
		if (strcmp(name, tune_goal_name(goal)) != 0)
			continue;
		*ret_goal = goal;
		return true;
	}
	return false;
}

static struct tune_limit_result limit(const json_t *row, bool is_clock, bool is_added)
{
	return (struct tune_limit_result){
		.limit = number(row, is_clock ? "clock_mhz" : "cap_w"),
		.n_windows = (size_t)fmax(number(row, "windows"), 0),
		.steps = number(row, "steps"),
		.energy_j = number(row, "energy_j"),
		.time_s = number(row, "time_s"),
		.energy_per_step_j = interval(row, "energy_per_step_j", "energy_per_step_low_j",
			"energy_per_step_high_j"),
		.time_per_step_s = interval(row, "time_per_step_s", "time_per_step_low_s", "time_per_step_high_s"),
		.objective = interval(row, "objective", "objective_low", "objective_high"),
		.is_allowed = !json_is_false(json_object_get(row, "allowed")),
		.is_added = is_added,
	};
}

static bool is_drawable(const struct tune_limit_result *row)
{
	return row->limit > 0 && row->limit < largest_limit && row->objective.value > 0 &&
		isfinite(row->objective.value);
}

static bool is_near(double objective, double reference)
{
	return objective > reference / furthest_from_reference && objective < reference * furthest_from_reference;
}

static int descending(const void *a, const void *b)
{
	const struct tune_limit_result *x = a, *y = b;
	return (y->limit > x->limit) - (y->limit < x->limit);
}

static void limits(struct reader *r, const json_t *object, bool is_clock, struct tune_result *result)
{
	static const char *const keys[] = {"caps", "added_caps"};
	size_t n = 0, i;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		n += json_array_size(json_object_get(object, keys[k]));
	if (n == 0 || n > LIMITS_MAX)
		return;
	result->limits = array(r, n, sizeof(*result->limits));
	if (result->limits == NULL)
		return;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		json_t *row;
		json_array_foreach(json_object_get(object, keys[k]), i, row)
		{
			struct tune_limit_result read = limit(row, is_clock, k == 1);
			if (is_drawable(&read))
				result->limits[result->n_limits++] = read;
		}
	}
	if (result->n_limits == 0)
		return;
	qsort(result->limits, result->n_limits, sizeof(*result->limits), descending);
	size_t kept = 0;
	for (i = 0; i < result->n_limits; i++)
		if (is_near(result->limits[i].objective.value, result->limits[0].objective.value))
			result->limits[kept++] = result->limits[i];
	result->n_limits = kept;
}

static void curve(struct reader *r, const json_t *object, struct tune_result *result)
{
	const json_t *points = json_object_get(object, "curve");
	size_t n = json_array_size(points);
	if (n < 2 || n > CURVE_MAX || result->n_limits == 0)
		return;
	result->curve_x = array(r, n, sizeof(double));
	result->curve_y = array(r, n, sizeof(double));
	if (r->failed)
		return;
	for (size_t i = 0; i < n; i++) {
		const json_t *point = json_array_get(points, i), *x = json_array_get(point, 0),
			     *y = json_array_get(point, 1);
		if (!json_is_number(x) || !json_is_number(y))
			return;
		result->curve_x[i] = json_number_value(x);
		result->curve_y[i] = json_number_value(y);
		if (!(result->curve_x[i] > 0 && result->curve_x[i] < largest_limit) ||
			!is_near(result->curve_y[i], result->limits[0].objective.value))
			return;
	}
	result->n_curve = n;
}

static enum tune_model model(const json_t *object)
{
	const char *name = json_string_value(json_object_get(json_object_get(object, "model"), "name"));
	for (enum tune_model m = TUNE_NO_MODEL; name != NULL && m <= TUNE_SPLINE_MODEL; m++)
		if (strcmp(name, tune_model_name(m)) == 0)
			return m;
	return TUNE_NO_MODEL;
}

static void result(struct reader *r, const json_t *object, struct cap_tune_report *report)
{
	struct tune_result *result = &report->result;
	const char *note = json_string_value(json_object_get(object, "note"));
	if (!is_goal(object, &result->goal))
		return;
	limits(r, object, report->what == CAP_CLOCKS, result);
	if (result->n_limits == 0)
		return;
	curve(r, object, result);
	result->slowdown_percent = number(object, "allowed_slowdown_percent");
	result->chosen = report->chosen;
	result->saving_percent = interval(object, "saving_percent", "saving_low_percent", "saving_high_percent");
	result->slowdown = interval(object, "slowdown_percent", "slowdown_low_percent", "slowdown_high_percent");
	result->chosen_range = interval(object, "", "chosen_low", "chosen_high");
	result->model = model(object);
	result->residual_percent = number(json_object_get(object, "model"), "residual_percent");
	result->noise_percent = number(object, "noise_percent");
	result->drift_percent = number(object, "drift_percent");
	snprintf(result->note, sizeof(result->note), "%s", note != NULL ? note : "");
	report->has_result = report->chosen > 0 && report->chosen < largest_limit;
}

static void notes(const json_t *object, struct cap_tune_report *report)
{
	size_t i;
	json_t *note;
	json_array_foreach(json_object_get(object, "notes"), i, note) if (json_is_string(note))
		cap_tune_note(report, "%s", json_string_value(note));
}

static void report(struct reader *r, const json_t *object, struct cap_tune_report *ret_report)
{
	const char *what = json_string_value(json_object_get(object, "what"));
	bool is_clock = what != NULL && strcmp(what, cap_what_name(CAP_CLOCKS)) == 0;
	*ret_report = (struct cap_tune_report){
		.device = text(r, object, "device"),
		.label = text(r, object, "name"),
		.step = text(r, object, "step"),
		.end = text(r, object, "ended_because"),
		.source = text(r, object, "source"),
		.what = is_clock ? CAP_CLOCKS : CAP_POWER,
		.previous = number(object, is_clock ? "previous_mhz" : "previous_w"),
		.chosen = number(object, is_clock ? "chosen_mhz" : "chosen_w"),
		.is_applied = json_is_true(json_object_get(object, "applied")),
		.is_whole = json_is_true(json_object_get(object, "complete")),
		.elapsed_s = number(object, "elapsed_s"),
		.measured_s = number(object, "measured_s"),
		.n_windows = (size_t)fmax(number(object, "windows"), 0),
		.seed = (uint64_t)json_integer_value(json_object_get(object, "seed")),
	};
	result(r, object, ret_report);
	notes(object, ret_report);
}

int cap_tune_read(const char *json, struct arena *arena, struct cap_tune_report **ret_reports, size_t *ret_n)
{
	json_t *document = json_loads(json, 0, NULL);
	size_t n = json_is_array(document) ? json_array_size(document) : json_is_object(document) ? 1 : 0;
	struct reader r = {.arena = arena};
	struct cap_tune_report *reports = n > 0 && n <= REPORTS_MAX ? array(&r, n, sizeof(*reports)) : NULL;
	for (size_t i = 0; reports != NULL && i < n && !r.failed; i++)
		report(&r, json_is_array(document) ? json_array_get(document, i) : document, &reports[i]);
	json_decref(document);
	if (r.failed)
		return -ENOMEM;
	if (reports == NULL)
		return -EINVAL;
	*ret_reports = reports;
	*ret_n = n;
	return 0;
}
