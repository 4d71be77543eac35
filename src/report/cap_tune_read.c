/* What a search left in its run file, back into what it was made of: as far as a page shows it. */
#include "report/cap_report.h"

#include "base/fields.h"
#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

enum { REPORTS_MAX = 64, LIMITS_MAX = 1000, CURVE_MAX = 1000 };

// Pictures have room for figures of this world only: what lies far outside was made by no search.
static const double largest_limit = 1e6, furthest_from_reference = 1e3;

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

// The limits that can be drawn, highest first.
static void keep_drawable(struct tune_result *result)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < result->n_limits; i++)
		if (is_drawable(&result->limits[i]))
			result->limits[n++] = result->limits[i];
	qsort(result->limits, n, sizeof(*result->limits), descending);
	for (size_t i = 0; i < n; i++)
		if (is_near(result->limits[i].objective.value, result->limits[0].objective.value))
			result->limits[kept++] = result->limits[i];
	result->n_limits = kept;
}

static int limits(const json_t *object, struct arena *arena, struct tune_result *result)
{
	static const char *const keys[] = {"caps", "added_caps"};
	struct tune_limit_result *read[ARRAY_SIZE(keys)];
	size_t n[ARRAY_SIZE(keys)];
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		const json_t *array = json_object_get(object, keys[k]);
		int r = json_array_size(array) > LIMITS_MAX
			? -EINVAL
			: fields_read_list(array, &tune_limit_type, sizeof(*read[k]), arena, (void **)&read[k], &n[k],
				  NULL);
		if (r < 0)
			return r;
	}
	result->limits = arena_alloc(arena, n[0] + n[1] + 1, sizeof(*result->limits));
	if (result->limits == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		for (size_t i = 0; i < n[k]; i++) {
			read[k][i].is_added = k == 1;
			result->limits[result->n_limits++] = read[k][i];
		}
	keep_drawable(result);
	return 0;
}

static int curve(const json_t *object, struct arena *arena, struct tune_result *result)
{
	const json_t *points = json_object_get(object, "curve");
	size_t n = json_array_size(points);
	if (n < 2 || n > CURVE_MAX || result->n_limits == 0)
		return 0;
	result->curve_x = arena_alloc(arena, n, sizeof(double));
	result->curve_y = arena_alloc(arena, n, sizeof(double));
	if (result->curve_x == NULL || result->curve_y == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *point = json_array_get(points, i);
		result->curve_x[i] = json_number_value(json_array_get(point, 0));
		result->curve_y[i] = json_number_value(json_array_get(point, 1));
		if (!(result->curve_x[i] > 0 && result->curve_x[i] < largest_limit) ||
			!is_near(result->curve_y[i], result->limits[0].objective.value))
			return 0;
	}
	result->n_curve = n;
	return 0;
}

static void notes(const json_t *object, struct cap_tune_report *report)
{
	size_t i;
	json_t *note;
	json_array_foreach(json_object_get(object, "notes"), i, note) if (json_is_string(note))
		cap_tune_note(report, "%s", json_string_value(note));
}

static int report(const json_t *object, struct arena *arena, struct cap_tune_report *report)
{
	struct tune_result *result = &report->result;
	int r = fields_read(object, &cap_tune_type, report, arena, NULL);
	if (r < 0)
		return r;
	report->what = report->what == CAP_CLOCKS ? CAP_CLOCKS : CAP_POWER;
	if (result->model > TUNE_SPLINE_MODEL)
		result->model = TUNE_NO_MODEL;
	result->chosen = report->chosen;
	result->chosen_range.value = (double)NAN;
	notes(object, report);
	if (result->goal > TUNE_SLOWDOWN)
		return 0;
	r = limits(object, arena, result);
	if (r == 0)
		r = curve(object, arena, result);
	report->has_result = result->n_limits > 0 && report->chosen > 0 && report->chosen < largest_limit;
	return r;
}

int cap_tune_read(const char *json, struct arena *arena, struct cap_tune_report **ret_reports, size_t *ret_n)
{
	json_t *document = json_loads(json, 0, NULL);
	size_t n = json_is_array(document) ? json_array_size(document) : json_is_object(document) ? 1 : 0;
	bool is_possible = n > 0 && n <= REPORTS_MAX;
	struct cap_tune_report *reports = is_possible ? arena_alloc(arena, n, sizeof(*reports)) : NULL;
	int r = !is_possible ? -EINVAL : reports == NULL ? -ENOMEM : 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = report(json_is_array(document) ? json_array_get(document, i) : document, arena, &reports[i]);
	json_decref(document);
	if (r < 0)
		return r;
	*ret_reports = reports;
	*ret_n = n;
	return 0;
}
