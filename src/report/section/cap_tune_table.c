/* Table of the measured limits and the chosen one, with the same columns for terminal and page. */
#include "report/cap_report.h"

#include "base/util.h"
#include "report/section/grid.h"
#include "report/report.h"

static const struct cap_tune_report *report_of(const struct object_at *row)
{
	return row->outer->data;
}

static const struct tune_limit_result *limit_of(const struct object_at *row)
{
	return row->data;
}

static bool is_chosen(const struct object_at *row)
{
	return cap_tune_is_chosen(report_of(row), limit_of(row)->limit);
}

bool cap_tune_is_chosen(const struct cap_tune_report *report, double limit)
{
	return fabs(limit - report->chosen) < 0.5;
}

/* ---- cells ---- */

// Writes the half width of the interval in percent on a terminal, its ends on a page.
void cap_tune_interval(struct buf *out, const struct tune_interval *interval, void (*print)(struct buf *, double),
	bool is_page)
{
	double half = (interval->high - interval->low) / 2;
	print(out, interval->value);
	if (isnan(half) || (!is_page && !(interval->value > 0)))
		return;
	if (!is_page) {
		buf_str(out, " ± ");
		buf_fixed(out, 100 * half / interval->value, 1);
		buf_str(out, " %");
		return;
	}
	buf_str(out, " <span class=\"faint\">(");
	print(out, interval->low);
	buf_str(out, " … ");
	print(out, interval->high);
	buf_str(out, ")</span>");
}

static void mark(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out, is_chosen(row) ? ">" : "");
}

static void state(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out,
		is_chosen(row)                       ? "chosen"
			: !limit_of(row)->is_allowed ? "too slow"
			: limit_of(row)->is_added    ? "added"
						     : "");
}

static void limit(struct buf *out, const struct object_at *row, bool is_page)
{
	human_cap(out, limit_of(row)->limit, cap_kind_unit(report_of(row)->what));
	if (is_page && (is_chosen(row) || !limit_of(row)->is_allowed))
		buf_str(out, is_chosen(row) ? " (chosen)" : " (too slow)");
}

static void energy(struct buf *out, const struct object_at *row, bool is_page)
{
	cap_tune_interval(out, &limit_of(row)->energy_per_step_j, human_energy, is_page);
}

static void time_of(struct buf *out, const struct object_at *row, bool is_page)
{
	cap_tune_interval(out, &limit_of(row)->time_per_step_s, human_time, is_page);
}

static void objective(struct buf *out, const struct object_at *row, bool is_page)
{
	double by = 100 * (limit_of(row)->objective.value / report_of(row)->result.limits[0].objective.value - 1);
	if (isnan(by)) {
		buf_str(out, "n/a");
		return;
	}
	buf_str(out, by >= 0.05 ? "+" : by <= -0.05 ? "-" : "");
	buf_fixed(out, fabs(by), 1);
	buf_str(out, " %");
}

/* ---- table ---- */

static void attributes(struct buf *out, const struct object_at *row)
{
	buf_str(out, is_chosen(row) ? " class=\"best\"" : "");
}

static bool is_faint(const struct object_at *row)
{
	return !limit_of(row)->is_allowed || (limit_of(row)->n_windows == 0 && !is_chosen(row));
}

// Model prediction at a limit between two measured ones.
static struct tune_limit_result expected(const struct cap_tune_report *report)
{
	const struct tune_result *result = &report->result;
	const struct tune_limit_result *reference = &result->limits[0];
	const double none = (double)NAN;
	double energy_part = 1 - result->saving_percent.value / 100, time_part = 1 + result->slowdown.value / 100;
	double times = result->goal == TUNE_ED2P ? 2 : result->goal == TUNE_EDP ? 1 : 0;
	return (struct tune_limit_result){
		.limit = report->chosen,
		.energy_per_step_j = {reference->energy_per_step_j.value * energy_part, none, none},
		.time_per_step_s = {reference->time_per_step_s.value * time_part, none, none},
		.objective = {reference->objective.value * energy_part * pow(time_part, times), none, none},
		.is_allowed = true,
	};
}

void cap_tune_table(const struct cap_tune_report *report, struct buf *out, const struct style *style)
{
	const struct tune_result *result = &report->result;
	const bool is_run = report->step == NULL;
	const struct column columns[] = {
		{.write = mark, .kind = COLUMN_TEXT, .only = ON_TEXT},
		{.title = "limit", .write = limit},
		{.title = is_run ? "energy per run" : "energy per step", .write = energy},
		{.title = is_run ? "time per run" : "time per step", .write = time_of},
		{.title = tune_goal_title(result->goal), .write = objective},
		{"steps", "steps", .only = ON_PAGE},
		{"windows", "windows"},
		{.write = state, .kind = COLUMN_TEXT, .only = ON_TEXT},
	};
	const struct grid grid = GRID(NULL, columns, .attributes = attributes, .is_faint = is_faint, .is_fixed = true);
	const struct object_at document = {.type = &cap_tune_type, .data = report};
	const struct tune_limit_result chosen = expected(report);
	struct rows rows = {.at = calloc_array(result->n_limits + 1, sizeof(*rows.at))};
	bool is_there = rows.at == NULL; // no table without memory
	for (size_t i = 0; i < result->n_limits && !is_there; i++)
		is_there = cap_tune_is_chosen(report, result->limits[i].limit);
	for (size_t i = 0; rows.at != NULL && i < result->n_limits; i++) {
		if (!is_there && result->limits[i].limit < report->chosen) {
			rows.at[rows.n++] = (struct object_at){&tune_limit_type, &chosen, &document, i, NULL};
			is_there = true;
		}
		rows.at[rows.n++] = (struct object_at){&tune_limit_type, &result->limits[i], &document, i, NULL};
	}
	rows.shown = rows.n;
	if (style != NULL)
		grid_text(&grid, &rows, out, style);
	else
		grid_page(&grid, &rows, out);
	free(rows.at);
}
