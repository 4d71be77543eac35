#include "analysis/chart/chart.h"

#include "random_run.h"

/* What holds for the charts of any run, and what single ones must show. */

static const struct chart_series *series_of(const struct charts *charts, const char *id, const char *name)
{
	const struct chart *chart = charts_find(charts, id);
	for (size_t i = 0; chart != NULL && i < chart->n_series; i++)
		if (strcmp(chart->series[i].name, name) == 0)
			return &chart->series[i];
	return NULL;
}

static double integral(const struct charts *charts, const struct chart_series *series)
{
	double sum = 0;
	for (size_t i = 0; i < charts->axis.n; i++)
		if (!isnan(series->mean[i]))
			sum += series->mean[i] * (charts->axis.to_s[i] - charts->axis.from_s[i]);
	return sum;
}

static void assert_near(double actual, double expected)
{
	if (!(fabs(actual - expected) <= 1e-9 + 1e-7 * fabs(expected)))
		fail_msg("%.12g is not %.12g", actual, expected);
}

static void check_axis(const struct charts *charts)
{
	const struct chart_axis *axis = &charts->axis;
	double length_s = 0;
	for (size_t i = 0; i < axis->n; i++) {
		assert_true(axis->to_s[i] > axis->from_s[i]);
		assert_true(i == 0 || axis->from_s[i] >= axis->to_s[i - 1] - 1e-9);
		length_s += axis->to_s[i] - axis->from_s[i];
	}
	assert_near(length_s, charts->findings->duration_s);
	assert_near(axis->length_s, charts->findings->duration_s);
	for (size_t s = 0; s < axis->n_segments; s++) {
		double middle_s = (axis->segments[s].from_s + axis->segments[s].to_s) / 2;
		assert_near(chart_axis_s(axis, chart_axis_t_ns(axis, middle_s)), middle_s);
	}
}

static void check_series(const struct charts *charts, const struct chart_series *s)
{
	double highest = -INFINITY, lowest = INFINITY;
	for (size_t i = 0; i < charts->axis.n; i++) {
		assert_int_equal(isnan(s->mean[i]), isnan(s->low[i]));
		assert_int_equal(isnan(s->mean[i]), isnan(s->high[i]));
		if (isnan(s->mean[i]))
			continue;
		assert_true(s->low[i] <= s->mean[i] && s->mean[i] <= s->high[i]);
		highest = fmax(highest, s->high[i]);
		lowest = fmin(lowest, s->low[i]);
	}
	assert_true(s->highest == highest && s->lowest == lowest);
}

// The integral of the power is the energy; the highest power is no less than the report's.
static void check_power(const struct charts *charts)
{
	const struct findings *f = charts->findings;
	const struct chart_series *whole = series_of(charts, "power", "total"),
				  *target = series_of(charts, "power", "target");
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		const struct chart_series *s = series_of(charts, "power", domain->device->name);
		if (isnan(domain->energy_j))
			assert_null(s);
		if (isnan(domain->energy_j) || (s == NULL && domain->energy_j == 0))
			continue;
		assert_non_null(s);
		assert_near(integral(charts, s), domain->energy_j);
		assert_int_equal(s->line, domain->in_total ? CHART_PART : CHART_BESIDE);
		if (domain->in_total)
			assert_true(whole != NULL && whole->highest >= s->highest * (1 - 1e-12));
	}
	if (whole == NULL)
		return;
	assert_near(integral(charts, whole), f->total_j);
	assert_near(target != NULL ? integral(charts, target) : 0, f->ledger.target_j);
}

static void check_lanes(const struct charts *charts)
{
	size_t n_spans = 0, n_items = 0;
	for (size_t k = 0; k < charts->n_lanes; k++) {
		const struct chart_lane *lane = &charts->lanes[k];
		size_t n = 0;
		for (size_t i = 0; i < lane->n_items; i++) {
			assert_true(lane->items[i].to_s >= lane->items[i].from_s);
			assert_true(i == 0 || lane->items[i].from_s >= lane->items[i - 1].to_s);
			n += lane->items[i].count;
		}
		assert_int_equal(n, lane->n_spans);
		n_spans += n;
		n_items += lane->n_items;
	}
	assert_int_equal(n_items, charts->n_items);
	assert_true(n_spans <= charts->n_spans);
}

static void check_run(const struct run *run, const struct chart_limits *limits)
{
	struct findings findings;
	struct charts charts;
	assert_int_equal(findings_make(run, &findings), 0);
	assert_int_equal(charts_make(&findings, limits, &charts), 0);
	check_axis(&charts);
	for (size_t i = 0; i < charts.n_charts; i++)
		for (size_t k = 0; k < charts.charts[i].n_series; k++)
			check_series(&charts, &charts.charts[i].series[k]);
	check_power(&charts);
	check_lanes(&charts);
	charts_finish(&charts);
	findings_finish(&findings);
}

static void any_run(void **state)
{
	static const struct chart_limits limits[] = {{0}, {.buckets = 7, .items = 3}, {.buckets = 1, .lanes = 1}};
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
		struct run run;
		random_run(&run, &random);
		for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
			check_run(&run, &limits[i]);
		build_finish(&run);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "1,000 random histories: power integrates to each energy, means lie between low and high",
		any_run);
	return rows_run(&tests, "charts");
}
