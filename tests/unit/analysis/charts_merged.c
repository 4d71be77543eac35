/* Charts of several runs on one axis: no energy is lost where their buckets differ, and none is added beyond their
 * ends. */
#include "analysis/chart/merge_runs.h"

#include "base/util.h"

#include "rows.h"

#include <string.h>

enum { BUCKETS_MAX = 8 };

// A run's chart: the edges of its buckets and the power in each; NaN ends the edges.
struct made {
	double edges[BUCKETS_MAX + 1], mean_w[BUCKETS_MAX];
};

static const struct row {
	const char *teaches;
	struct made a, b;
	size_t n; // of the common axis
	double edges[2 * BUCKETS_MAX];
	double a_w[2 * BUCKETS_MAX], b_w[2 * BUCKETS_MAX], a_j[2 * BUCKETS_MAX];
} table[] = {
	{"equal buckets: unchanged", {{0, 1, 2, NAN}, {10, 20}}, {{0, 1, 2, NAN}, {5, 6}}, 2, {0, 1, 2}, {10, 20},
		{5, 6}, {10, 30}},
	{"buckets are split at the other run's edges", {{0, 1, 2, NAN}, {10, 20}}, {{0, 1.5, 2, NAN}, {5, 6}}, 3,
		{0, 1, 1.5, 2}, {10, 20, 20}, {5, 5, 6}, {10, 20, 30}},
	{"beyond the end of the shorter run: unknown", {{0, 1, NAN}, {10}}, {{0, 1, 4, NAN}, {5, 6}}, 2,
		{0, 1, 4}, {10, NAN}, {5, 6}, {10, NAN}},
	{"gap: stays a gap, the sum continues after it", {{0, 1, 2, 3, NAN}, {10, NAN, 30}}, {{0, 3, NAN}, {5}}, 3,
		{0, 1, 2, 3}, {10, NAN, 30}, {5, 5, 5}, {10, NAN, 40}},
	{"run without duration: listed, no line", {{0, 1, NAN}, {10}}, {{NAN}, {0}}, 1, {0, 1}, {10}, {NAN},
		{10}},
};

struct holder {
	struct charts charts;
	struct chart chart;
	struct chart_series series;
};

static void make(struct holder *holder, const struct made *made)
{
	size_t n = 0;
	while (!isnan(made->edges[n]))
		n++;
	double *values = (double *)(uintptr_t)made->mean_w;
	holder->series = (struct chart_series){.name = "total",
		.line = CHART_WHOLE,
		.mean = values,
		.low = values,
		.high = values};
	holder->chart = (struct chart){.id = "power", .unit = "w", .series = &holder->series, .n_series = 1};
	holder->charts = (struct charts){.charts = &holder->chart, .n_charts = 1};
	holder->charts.axis.n = n > 0 ? n - 1 : 0;
	holder->charts.axis.from_s = (double *)(uintptr_t)made->edges;
	holder->charts.axis.to_s = holder->charts.axis.from_s + 1;
}

static void same(double actual, double expected)
{
	if (isnan(expected))
		assert_true(isnan(actual));
	else
		assert_float_equal(actual, expected, 1e-9);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct holder a, b;
	make(&a, &row->a);
	make(&b, &row->b);
	const struct chart_member members[] = {{"a", &a.charts}, {"nothing", NULL}, {"b", &b.charts}};
	struct charts together;
	assert_int_equal(charts_merge_runs(members, ARRAY_SIZE(members), &together), 0);
	assert_int_equal(together.axis.n, row->n);
	same(together.axis.length_s, row->edges[row->n]);
	const struct chart *power = charts_find(&together, "power"), *energy = charts_find(&together, "energy");
	assert_int_equal(power->n_series, 2);
	assert_string_equal(power->series[0].name, "a");
	assert_string_equal(power->series[1].device->name, "run-2");
	for (size_t i = 0; i < row->n; i++) {
		same(together.axis.from_s[i], row->edges[i]);
		same(together.axis.to_s[i], row->edges[i + 1]);
		same(power->series[0].mean[i], row->a_w[i]);
		same(power->series[1].mean[i], row->b_w[i]);
		same(energy->series[0].mean[i], row->a_j[i]);
	}
	charts_finish(&together);
}

static void no_run_at_all(void **state)
{
	const struct chart_member members[] = {{"saved", NULL}};
	struct charts together;
	assert_int_equal(charts_merge_runs(members, 1, &together), 0);
	assert_int_equal(together.n_charts, 0);
	assert_int_equal(together.axis.n, 0);
	charts_finish(&together);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD_ONE(&rows, "saved results: no charts", no_run_at_all);
	return rows_run(&rows, "charts together");
}
