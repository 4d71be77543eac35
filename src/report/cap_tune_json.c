#include "report/cap_report.h"

#include "base/fields.h"
#include "base/util.h"

enum { CURVE_POINTS = 60 };

// clang-format off

struct report_list {
	const struct cap_tune_report *reports;
	size_t n;
};

// The report that contains an object.
static const struct cap_tune_report *report_of(const struct object_at *at)
{
	while (at->type != &cap_tune_type)
		at = at->outer;
	return at->data;
}

static bool is_clock(const struct object_at *at)
{
	return report_of(at)->what == CAP_CLOCKS;
}

static bool has_result(const struct object_at *at)
{
	return report_of(at)->has_result;
}

static bool has_no_result(const struct object_at *at)
{
	return !has_result(at);
}

/* ---- limits ---- */

#define L struct tune_limit_result
static const struct field limit_fields[] = {
	FIELD_AS(L, "cap_w", limit, "W", "the limit", .null_if = is_clock),
	FIELD_AS(L, "clock_mhz", limit, "MHz", "the limit", .present = is_clock),
	FIELD(L, steps, NULL, "steps measured under this limit"),
	FIELD(L, energy_j, "J", "energy of these steps, as measured"),
	FIELD(L, time_s, "s", "time of these steps, as measured"),
	FIELD_AS(L, "objective", objective.value, NULL, "objective per step, in objective_unit"),
	FIELD_AS(L, "objective_low", objective.low, NULL, "lower end of the 95 % interval"),
	FIELD_AS(L, "objective_high", objective.high, NULL, "upper end of the 95 % interval"),
	FIELD_AS(L, "energy_per_step_j", energy_per_step_j.value, "J", "energy per step, corrected for drift"),
	FIELD_AS(L, "energy_per_step_low_j", energy_per_step_j.low, "J", "lower end of the 95 % interval"),
	FIELD_AS(L, "energy_per_step_high_j", energy_per_step_j.high, "J", "upper end of the 95 % interval"),
	FIELD_AS(L, "time_per_step_s", time_per_step_s.value, "s", "time per step, corrected for drift"),
	FIELD_AS(L, "time_per_step_low_s", time_per_step_s.low, "s", "lower end of the 95 % interval"),
	FIELD_AS(L, "time_per_step_high_s", time_per_step_s.high, "s", "upper end of the 95 % interval"),
	FIELD_AS(L, "windows", n_windows, NULL, "windows measured under this limit"),
	FIELD_AS(L, "allowed", is_allowed, NULL, "whether the slowdown is within the bound"),
};
#undef L
const struct object_type tune_limit_type = OBJECT_TYPE("cap", "Results under one limit.", limit_fields);

// The candidates, or the limits added near the best one; selected by the field's offset.
static const struct tune_limit_result *limit_at(const struct object_at *at, size_t i, size_t *ret_n)
{
	const struct tune_result *result = &report_of(at)->result;
	const struct tune_limit_result *found = NULL;
	*ret_n = 0;
	for (size_t k = 0; has_result(at) && k < result->n_limits; k++)
		if (result->limits[k].is_added == (at->field->offset != 0) && (*ret_n)++ == i)
			found = &result->limits[k];
	return found;
}

static size_t limit_count(const struct object_at *at)
{
	size_t n;
	limit_at(at, 0, &n);
	return n;
}

static const void *limit_item(const struct object_at *at, size_t i)
{
	size_t n;
	return limit_at(at, i, &n);
}

/* ---- model ---- */

static size_t parameter_count(const struct object_at *at)
{
	return report_of(at)->result.n_parameters;
}

static double parameter(const struct object_at *at)
{
	return report_of(at)->result.parameters[at->index];
}

static bool has_no_model(const struct object_at *at)
{
	return report_of(at)->result.model == TUNE_NO_MODEL;
}

static const struct field parameter_field = FIELD_NUMBER("parameter", parameter, NULL, "a parameter");

#define T struct tune_result
static const struct field model_fields[] = {
	FIELD_AS(T, "name", model, NULL, "kind of curve", .one_of = tune_model_names),
	FIELD_VALUES("parameters", &parameter_field, parameter_count, "parameters of the curve"),
	FIELD(T, residual_percent, "%", "residual of the model at the measured limits", .null_if = has_no_model),
};
#undef T
static const struct object_type model_type = OBJECT_TYPE("model", "The curve through the measured limits.", model_fields);

/* ---- curve: at most CURVE_POINTS, from one end to the other ---- */

static size_t point_count(const struct object_at *at)
{
	size_t n = report_of(at)->result.n_curve;
	return n < CURVE_POINTS ? n : CURVE_POINTS;
}

static size_t two(const struct object_at *at)
{
	return 2;
}

static double coordinate(const struct object_at *at)
{
	const struct tune_result *result = &report_of(at)->result;
	size_t n = point_count(at);
	size_t point = n > 1 ? (at->outer->index * (result->n_curve - 1) + (n - 1) / 2) / (n - 1) : 0;
	return (at->index == 0 ? result->curve_x : result->curve_y)[point];
}

static const struct field coordinate_field = FIELD_NUMBER("coordinate", coordinate, NULL, "limit, then objective");
static const struct field point_field = FIELD_VALUES("point", &coordinate_field, two, "a point", .one_line = true);

/* ---- document ---- */

static const char *objective_unit(const struct object_at *at, struct buf *scratch)
{
	return has_result(at) ? tune_goal_unit(report_of(at)->result.goal) : NULL;
}

static bool has_bound(const struct object_at *at)
{
	return has_result(at) && report_of(at)->result.goal == TUNE_SLOWDOWN;
}

static bool is_whole(const struct object_at *at)
{
	return report_of(at)->is_whole;
}

static double scale_error_percent(const struct object_at *at)
{
	double error = report_of(at)->scale_error;
	return error > 0 ? 100 * error : (double)NAN;
}

static size_t note_count(const struct object_at *at)
{
	return report_of(at)->n_notes;
}

static const char *note(const struct object_at *at, struct buf *scratch)
{
	return report_of(at)->notes[at->index];
}

static const struct field note_field = FIELD_TEXT("note", note, NULL, "a sentence");

#define R struct cap_tune_report
static const struct field report_fields[] = {
	FIELD_SCHEMA("wattle-cap-tune/1"),
	FIELD(R, device, NULL, "limited device; several: names separated by commas"),
	FIELD_AS(R, "name", label, NULL, "model of the device"),
	FIELD(R, what, NULL, "limited quantity", .one_of = cap_kind_names),
	FIELD_AS(R, "objective", result.goal, NULL, "quantity that is minimized", .one_of = tune_goal_names, .null_if = has_no_result),
	FIELD_TEXT("objective_unit", objective_unit, NULL, "unit of the objective"),
	FIELD_AS(R, "allowed_slowdown_percent", result.slowdown_percent, "%", "bound of the slowdown", .present = has_bound),
	FIELD_AS(R, "chosen_w", chosen, "W", "best limit; null with --clocks", .null_if = is_clock),
	FIELD_AS(R, "previous_w", previous, "W", "limit before the search; null with --clocks", .null_if = is_clock),
	FIELD_AS(R, "chosen_mhz", chosen, "MHz", "best limit", .present = is_clock),
	FIELD_AS(R, "previous_mhz", previous, "MHz", "limit before the search", .present = is_clock),
	FIELD_AS(R, "applied", is_applied, NULL, "whether the best limit was set"),
	FIELD_AS(R, "complete", is_whole, NULL, "whether the search was completed"),
	FIELD_AS(R, "ended_because", end, NULL, "reason why it was not completed", .null_if = is_whole),
	FIELD(R, step, NULL, "block or metric that counts steps; null: each run of the command is a step"),
	FIELD_AS(R, "saving_percent", result.saving_percent.value, "%", "energy saved per step, relative to the highest limit tried", .null_if = has_no_result),
	FIELD_AS(R, "saving_low_percent", result.saving_percent.low, "%", "lower end of the 95 % interval", .present = has_result),
	FIELD_AS(R, "saving_high_percent", result.saving_percent.high, "%", "upper end of the 95 % interval", .present = has_result),
	FIELD_AS(R, "slowdown_percent", result.slowdown.value, "%", "increase of the time per step, relative to the highest limit tried", .null_if = has_no_result),
	FIELD_AS(R, "slowdown_low_percent", result.slowdown.low, "%", "lower end of the 95 % interval", .present = has_result),
	FIELD_AS(R, "slowdown_high_percent", result.slowdown.high, "%", "upper end of the 95 % interval", .present = has_result),
	FIELD_AS(R, "chosen_low", result.chosen_range.low, NULL, "lower end of the 95 % interval of the best limit, in W or MHz", .present = has_result),
	FIELD_AS(R, "chosen_high", result.chosen_range.high, NULL, "upper end of that interval", .present = has_result),
	FIELD_LIST("caps", &tune_limit_type, limit_count, limit_item, "the limits, highest first", .offset = false),
	FIELD_LIST("added_caps", &tune_limit_type, limit_count, limit_item, "limits added beside the best candidate; not in the CSV", .offset = true,
		.present = has_result),
	FIELD_OBJECT(R, "model", result, &model_type, "the curve through the measured limits", .null_if = has_no_result),
	FIELD_AS(R, "noise_percent", result.noise_percent, "%", "scatter of windows under one limit", .present = has_result),
	FIELD_AS(R, "drift_percent", result.drift_percent, "%", "drift of the objective from the first window to the last", .present = has_result),
	FIELD_VALUES("curve", &point_field, point_count, "at most 60 points of the model: limit and objective", .present = has_result),
	FIELD_AS(R, "windows", n_windows, NULL, "measured windows"),
	FIELD(R, measured_s, "s", "duration of the measured windows"),
	FIELD(R, elapsed_s, "s", "duration of the search"),
	FIELD(R, source, NULL, "sensor of the energy"),
	FIELD_NUMBER("scale_error_percent", scale_error_percent, "%", "error of that sensor; equal under all limits, so it does not affect the choice"),
	FIELD(R, seed, NULL, "seed of the order of limits and of the intervals"),
	FIELD_AS(R, "note", result.note, NULL, "reason why there is no model, or another remark", .null_if = has_no_result),
	FIELD_VALUES("notes", &note_field, note_count, "remarks on the search"),
};
#undef R
const struct object_type cap_tune_type = OBJECT_TYPE("cap_tune", "Result of wattle cap tune for a device.", report_fields);

static const struct field list_fields[] = {
	FIELD_ITEMS(struct report_list, NULL, reports, n, &cap_tune_type, "a result for each device"),
};
const struct object_type cap_tune_list_type =
	OBJECT_TYPE("cap_tune_list", "Results of wattle cap tune for several devices.", list_fields);

static void document(const struct cap_tune_report *reports, size_t n, struct buf *out, bool pretty)
{
	const struct report_list list = {reports, n};
	document_json(out, n == 1 ? &cap_tune_type : &cap_tune_list_type, n == 1 ? (const void *)reports : &list, pretty);
}

void cap_tune_json(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	document(reports, n, out, true);
}

void cap_tune_json_line(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	document(reports, n, out, false);
}
