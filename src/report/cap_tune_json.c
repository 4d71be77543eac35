#include "report/cap_tune.h"

#include "base/jsonw.h"
#include "base/util.h"

enum { CURVE_POINTS = 60 };

static void interval(struct jsonw *j, const char *low, const char *high, const struct tune_interval *interval)
{
	jsonw_key_double(j, low, interval->low);
	jsonw_key_double(j, high, interval->high);
}

static double power(const struct cap_tune_report *report, double value)
{
	return report->what == CAP_POWER ? value : (double)NAN;
}

static double clock_mhz(const struct cap_tune_report *report, double value)
{
	return report->what == CAP_CLOCKS ? value : (double)NAN;
}

static void cap(struct jsonw *j, const struct cap_tune_report *report, const struct tune_limit_result *row)
{
	jsonw_begin_object(j);
	jsonw_key_double(j, "cap_w", power(report, row->limit));
	if (report->what == CAP_CLOCKS)
		jsonw_key_double(j, "clock_mhz", row->limit);
	jsonw_key_double(j, "steps", row->steps);
	jsonw_key_double(j, "energy_j", row->energy_j);
	jsonw_key_double(j, "time_s", row->time_s);
	jsonw_key_double(j, "objective", row->objective.value);
	interval(j, "objective_low", "objective_high", &row->objective);
	jsonw_key_double(j, "energy_per_step_j", row->energy_per_step_j.value);
	interval(j, "energy_per_step_low_j", "energy_per_step_high_j", &row->energy_per_step_j);
	jsonw_key_double(j, "time_per_step_s", row->time_per_step_s.value);
	interval(j, "time_per_step_low_s", "time_per_step_high_s", &row->time_per_step_s);
	jsonw_key_i64(j, "windows", (int64_t)row->n_windows);
	jsonw_key_bool(j, "allowed", row->is_allowed);
	jsonw_end_object(j);
}

static void caps(struct jsonw *j, const char *key, const struct cap_tune_report *report, bool added)
{
	jsonw_key(j, key);
	jsonw_begin_array(j);
	for (size_t i = 0; i < report->result.n_limits; i++)
		if (report->result.limits[i].is_added == added)
			cap(j, report, &report->result.limits[i]);
	jsonw_end_array(j);
}

static void model(struct jsonw *j, const struct tune_result *result)
{
	jsonw_key(j, "model");
	jsonw_begin_object(j);
	jsonw_key_string(j, "name", tune_model_name(result->model));
	jsonw_key(j, "parameters");
	jsonw_begin_array(j);
	for (size_t i = 0; i < result->n_parameters; i++)
		jsonw_double(j, result->parameters[i]);
	jsonw_end_array(j);
	jsonw_key_double(j, "residual_percent",
		result->model != TUNE_NO_MODEL ? result->residual_percent : (double)NAN);
	jsonw_end_object(j);
}

// A line a point of at most CURVE_POINTS, from one end to the other.
static void curve(struct jsonw *j, const struct tune_result *result)
{
	size_t n = result->n_curve < CURVE_POINTS ? result->n_curve : CURVE_POINTS;
	jsonw_key(j, "curve");
	jsonw_begin_array(j);
	for (size_t i = 0; i < n; i++) {
		size_t at = n > 1 ? (i * (result->n_curve - 1) + (n - 1) / 2) / (n - 1) : 0;
		bool pretty = j->pretty;
		jsonw_begin_array(j);
		j->pretty = false;
		jsonw_double(j, result->curve_x[at]);
		jsonw_double(j, result->curve_y[at]);
		jsonw_end_array(j);
		j->pretty = pretty;
	}
	jsonw_end_array(j);
}

static void found(struct jsonw *j, const struct cap_tune_report *report)
{
	const struct tune_result *result = &report->result;
	jsonw_key_double(j, "saving_percent", result->saving_percent.value);
	interval(j, "saving_low_percent", "saving_high_percent", &result->saving_percent);
	jsonw_key_double(j, "slowdown_percent", result->slowdown.value);
	interval(j, "slowdown_low_percent", "slowdown_high_percent", &result->slowdown);
	jsonw_key_double(j, "chosen_low", result->chosen_range.low);
	jsonw_key_double(j, "chosen_high", result->chosen_range.high);
	caps(j, "caps", report, false);
	caps(j, "added_caps", report, true);
	model(j, result);
	jsonw_key_double(j, "noise_percent", result->noise_percent);
	jsonw_key_double(j, "drift_percent", result->drift_percent);
	curve(j, result);
}

static void not_found(struct jsonw *j)
{
	jsonw_key_double(j, "saving_percent", (double)NAN);
	jsonw_key_double(j, "slowdown_percent", (double)NAN);
	jsonw_key(j, "caps");
	jsonw_begin_array(j);
	jsonw_end_array(j);
	jsonw_key(j, "model");
	jsonw_null(j);
}

static void notes(struct jsonw *j, const struct cap_tune_report *report)
{
	bool has_note = report->has_result && report->result.note[0] != '\0';
	jsonw_key_string(j, "note", has_note ? report->result.note : NULL);
	jsonw_key(j, "notes");
	jsonw_begin_array(j);
	for (size_t i = 0; i < report->n_notes; i++)
		jsonw_string(j, report->notes[i]);
	jsonw_end_array(j);
}

static void object(struct jsonw *j, const struct cap_tune_report *report)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "schema", "wattle-cap-tune/1");
	jsonw_key_string(j, "device", report->device);
	jsonw_key_string(j, "name", report->label);
	jsonw_key_string(j, "what", cap_what_name(report->what));
	jsonw_key_string(j, "objective", report->has_result ? tune_goal_name(report->result.goal) : NULL);
	jsonw_key_string(j, "objective_unit", report->has_result ? tune_goal_unit(report->result.goal) : NULL);
	if (report->has_result && report->result.goal == TUNE_SLOWDOWN)
		jsonw_key_double(j, "allowed_slowdown_percent", report->result.slowdown_percent);
	jsonw_key_double(j, "chosen_w", power(report, report->chosen));
	jsonw_key_double(j, "previous_w", power(report, report->previous));
	if (report->what == CAP_CLOCKS) {
		jsonw_key_double(j, "chosen_mhz", clock_mhz(report, report->chosen));
		jsonw_key_double(j, "previous_mhz", clock_mhz(report, report->previous));
	}
	jsonw_key_bool(j, "applied", report->is_applied);
	jsonw_key_bool(j, "complete", report->is_whole);
	jsonw_key_string(j, "ended_because", report->is_whole ? NULL : report->end);
	jsonw_key_string(j, "step", report->step);
	if (report->has_result)
		found(j, report);
	else
		not_found(j);
	jsonw_key_i64(j, "windows", (int64_t)report->n_windows);
	jsonw_key_double(j, "measured_s", report->measured_s);
	jsonw_key_double(j, "elapsed_s", report->elapsed_s);
	jsonw_key_string(j, "source", report->source);
	jsonw_key_double(j, "scale_error_percent", report->scale_error > 0 ? 100 * report->scale_error : (double)NAN);
	jsonw_key(j, "seed");
	jsonw_u64(j, report->seed);
	notes(j, report);
	jsonw_end_object(j);
}

static void document(const struct cap_tune_report *reports, size_t n, struct buf *out, bool pretty)
{
	struct jsonw j;
	jsonw_init(&j, out, pretty);
	if (n == 1) {
		object(&j, reports);
		return;
	}
	jsonw_begin_array(&j);
	for (size_t i = 0; i < n; i++)
		object(&j, &reports[i]);
	jsonw_end_array(&j);
}

void cap_tune_json(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	document(reports, n, out, true);
}

void cap_tune_json_line(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	document(reports, n, out, false);
}
