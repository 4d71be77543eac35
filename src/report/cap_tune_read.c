/* Reads a search result back from its run file, as far as the HTML page needs it. */
#include "report/cap_report.h"

#include "base/fields.h"
#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

enum { REPORTS_MAX = 64, LIMITS_MAX = 1000, CURVE_MAX = 1000 };

// Bounds of drawable values; no search produces values far outside them.
static const double largest_limit = 1e6, max_distance_from_reference = 1e3;

static bool is_drawable(const struct tune_limit_result *row)
{
	return row->limit > 0 && row->limit < largest_limit && row->objective.value > 0 &&
		isfinite(row->objective.value);
}

static bool is_near(double objective, double reference)
{
	return objective > reference / max_distance_from_reference &&
		objective < reference * max_distance_from_reference;
}

static int descending(const void *a, const void *b)
{
	const struct tune_limit_result *x = a, *y = b;
	return (y->limit > x->limit) - (y->limit < x->limit);
}

// Keeps the drawable limits, highest first.
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

// clang-format off
struct point {
	double *coordinates; // limit, then objective
	size_t n;
};

// A report with its lists as in the document.
struct saved {
	struct cap_tune_report report;
	struct tune_limit_result *caps, *added;
	struct point *curve;
	const char **notes;
	size_t n_caps, n_added, n_curve, n_notes;
};

#define S struct saved
static const struct field point_field = FIELD_ITEM_VALUES(struct point, NULL, coordinates, n, &number_item, "a point");
static const struct field saved_fields[] = {
	FIELD_INLINE(&cap_tune_type),
	FIELD_ITEMS(S, "caps", caps, n_caps, &tune_limit_type, "candidates"),
	FIELD_ITEMS(S, "added_caps", added, n_added, &tune_limit_type, "limits next to the best one"),
	FIELD_ITEM_VALUES(S, "curve", curve, n_curve, &point_field, "points of the model curve"),
	FIELD_ITEM_VALUES(S, "notes", notes, n_notes, &text_item, "notes on the search"),
};
#undef S
static const struct object_type saved_type = OBJECT_TYPE("cap_tune", "A stored result.", saved_fields);
// clang-format on

static int limits(const struct saved *saved, struct arena *arena, struct tune_result *result)
{
	if (saved->n_caps > LIMITS_MAX || saved->n_added > LIMITS_MAX)
		return -EINVAL;
	result->limits = arena_alloc(arena, saved->n_caps + saved->n_added + 1, sizeof(*result->limits));
	if (result->limits == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < saved->n_caps; i++)
		result->limits[result->n_limits++] = saved->caps[i];
	for (size_t i = 0; i < saved->n_added; i++) {
		result->limits[result->n_limits] = saved->added[i];
		result->limits[result->n_limits++].is_added = true;
	}
	keep_drawable(result);
	return 0;
}

static int curve(const struct saved *saved, struct arena *arena, struct tune_result *result)
{
	size_t n = saved->n_curve;
	if (n < 2 || n > CURVE_MAX || result->n_limits == 0)
		return 0;
	result->curve_x = arena_alloc(arena, n, sizeof(double));
	result->curve_y = arena_alloc(arena, n, sizeof(double));
	if (result->curve_x == NULL || result->curve_y == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct point *point = &saved->curve[i];
		if (point->n != 2 || !(point->coordinates[0] > 0 && point->coordinates[0] < largest_limit) ||
			!is_near(point->coordinates[1], result->limits[0].objective.value))
			return 0;
		result->curve_x[i] = point->coordinates[0];
		result->curve_y[i] = point->coordinates[1];
	}
	result->n_curve = n;
	return 0;
}

static int report(const json_t *object, struct arena *arena, struct cap_tune_report *report)
{
	struct saved saved = {0};
	int r = fields_read(object, &saved_type, &saved, arena, NULL);
	if (r < 0)
		return r;
	*report = saved.report;
	struct tune_result *result = &report->result;
	report->what = report->what == CAP_CLOCKS ? CAP_CLOCKS : CAP_POWER;
	if (result->model > TUNE_SPLINE_MODEL)
		result->model = TUNE_NO_MODEL;
	result->chosen = report->chosen;
	result->chosen_range.value = (double)NAN;
	for (size_t i = 0; i < saved.n_notes; i++)
		cap_tune_note(report, "%s", saved.notes[i] != NULL ? saved.notes[i] : "");
	if (result->goal > TUNE_SLOWDOWN)
		return 0;
	r = limits(&saved, arena, result);
	if (r == 0)
		r = curve(&saved, arena, result);
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
