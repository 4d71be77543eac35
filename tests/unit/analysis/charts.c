#include "analysis/chart/chart.h"

#include "analysis/energy/timeline.h"
#include "random_run.h"

/* Properties of the charts of any run, and required contents for single ones. */

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

// The integral of the power is the energy; the highest power is at least the report's.
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

/* ---- single runs ---- */

static void make(const struct run *run, const struct chart_limits *limits, struct findings *findings,
	struct charts *charts)
{
	assert_int_equal(findings_make(run, findings), 0);
	assert_int_equal(charts_make(findings, limits, charts), 0);
}

static void finish(struct run *run, struct findings *findings, struct charts *charts)
{
	charts_finish(charts);
	findings_finish(findings);
	build_finish(run);
}

// 60 s at 10 ms; 20 W, but 300 W in the 30 ms after 50 s: far shorter than a bucket and than an attribution window.
static void short_peak(void **state)
{
	bool by_counter = *(const bool *)*state;
	struct run run;
	struct findings findings;
	struct charts charts;
	build_run(&run, 6001);
	build_segment(&run, 0, 60);
	build_times(&run, 0, 6001, 0, 0.01);
	build_cpu(&run, 1, 0, 0, 2);
	struct run_device *device = by_counter ? build_metered(&run, "package-0", DOMAIN_PACKAGE, 20)
					       : build_powered(&run, "package-0", DOMAIN_PACKAGE, 20);
	device->update_period_s = 0.001;
	device->update_jitter_s = 0.00002;
	device->resolution_j = 0.000061;
	for (size_t i = 5001; i <= 6000; i++) {
		size_t peak = i < 5003 ? i - 5000 : 3;
		if (by_counter)
			device->values[DEVICE_ENERGY][i] += (int64_t)peak * 2800000;
		else if (i <= 5003)
			device->values[DEVICE_POWER][i] = 300000;
	}
	make(&run, &(struct chart_limits){.buckets = 3}, &findings, &charts);
	const struct chart_series *part = series_of(&charts, "power", "package-0"),
				  *whole = series_of(&charts, "power", "total");
	assert_int_equal(charts.axis.n, 3);
	assert_true(fabs(part->highest - 300) < 15 && fabs(whole->highest - 300) < 15);
	assert_true(part->high[0] < 21 && part->high[1] < 21 && part->mean[2] < 22);
	finish(&run, &findings, &charts);
}

// Two recordings an hour apart: the pause takes no room on the axis; instants within it map to its end.
static void pauses_are_cut(void **state)
{
	struct run run;
	struct findings findings;
	struct charts charts;
	build_run(&run, 40);
	build_segment(&run, 0, 1.9);
	build_segment(&run, 3600, 3601.9);
	build_times(&run, 0, 20, 0, 0.1);
	build_times(&run, 20, 40, 3600, 0.1);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	make(&run, NULL, &findings, &charts);
	const struct chart_axis *axis = &charts.axis;
	assert_near(axis->length_s, 3.8);
	assert_near(axis->segments[1].pause_s, 3598.1);
	const struct row {
		double t_s, at_s;
	} rows[] = {{-5, 0}, {1, 1}, {1.9, 1.9}, {1000, 1.9}, {3600.5, 2.4}, {9999, 3.8}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_near(chart_axis_s(axis, at_s(rows[i].t_s)), rows[i].at_s);
	assert_int_equal(chart_axis_t_ns(axis, 2.4), at_s(3600.5));
	assert_int_equal(chart_axis_wall_ns(axis, 2.4), build_wall_ns + llround(3600.5e9));
	for (size_t i = 0; i < axis->n; i++)
		assert_true(axis->to_s[i] <= 1.9 + 1e-9 || axis->from_s[i] >= 1.9 - 1e-9);
	finish(&run, &findings, &charts);
}

// A GPU that is not read for 20 s and throttled for 10 s.
static void bands_tell(void **state)
{
	struct run run;
	struct findings findings;
	struct charts charts;
	build_simple(&run, 601);
	build_cpu(&run, 1, 0, 0, 2);
	struct run_device *gpu = build_powered(&run, "gpu-0", DOMAIN_GPU, 200);
	for (size_t i = 0; i < run.n; i++)
		gpu->values[DEVICE_THROTTLE_REASONS][i] = i > 100 && i <= 200 ? 0x24 : 0x1;
	for (size_t i = 301; i < 500; i++)
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			gpu->values[m][i] = VALUE_MISSING;
	make(&run, NULL, &findings, &charts);
	assert_int_equal(charts.n_bands, 2);
	assert_string_equal(charts.bands[0].kind, "throttle");
	assert_string_equal(charts.bands[0].text, "power limit, thermal slowdown");
	assert_near(charts.bands[0].from_s, 10);
	assert_near(charts.bands[0].to_s, 20);
	assert_near(charts.bands[0].covered_s, 10);
	assert_string_equal(charts.bands[1].kind, "gap");
	assert_near(charts.bands[1].from_s, 30);
	assert_near(charts.bands[1].to_s, 50);
	const struct chart_series *power = series_of(&charts, "power", "gpu-0");
	assert_true(isnan(power->mean[400]) && power->mean[299] == 200 && power->mean[510] == 200);
	finish(&run, &findings, &charts);
}

/* Throttled in one of ten samples: too close together on a long axis. Bands may be joined, but they cover the
 * throttled time of the report; gaps in the readings and pauses between segments count in neither. */
static void bands_cover_what_was_held_back(void **state)
{
	enum { N = 60000, HOLE_BEGIN = 20000, HOLE_END = 30000, SECOND = 50000 };
	struct run run;
	struct findings findings;
	struct charts charts;
	build_run(&run, N);
	build_segment(&run, 0, (SECOND - 1) * 0.1);
	build_segment(&run, 90000, 90000 + (N - SECOND - 1) * 0.1);
	build_times(&run, 0, SECOND, 0, 0.1);
	build_times(&run, SECOND, N, 90000, 0.1);
	build_cpu(&run, 1, 0, 0, 2);
	struct run_device *gpu = build_powered(&run, "gpu-0", DOMAIN_GPU, 200);
	gpu->t_ns = build_unknown(run.arena, N);
	double expected_s = 0;
	size_t n = 0;
	for (size_t i = 0; i < N; i++) {
		if (i > HOLE_BEGIN && i < HOLE_END) // the device has no rows there
			continue;
		bool held = i % 10 == 0;
		gpu->values[DEVICE_THROTTLE_REASONS][n] = held ? 0x20 : 0x1;
		gpu->values[DEVICE_POWER][n] = 200000;
		gpu->t_ns[n++] = run.t_ns[i];
		expected_s += held && i != 0 && i != HOLE_END && i != SECOND ? 0.1 : 0;
	}
	gpu->n = n;
	make(&run, NULL, &findings, &charts);
	double covered_s = 0, drawn_s = 0;
	for (size_t i = 0; i < charts.n_bands; i++) {
		const struct chart_band *band = &charts.bands[i];
		assert_true(band->covered_s > 0 && band->covered_s <= band->to_s - band->from_s + 1e-9);
		if (strcmp(band->kind, "throttle") != 0)
			continue;
		covered_s += band->covered_s;
		drawn_s += band->to_s - band->from_s;
	}
	assert_true(fabs(covered_s - expected_s) < 1e-6 * expected_s);
	assert_true(fabs(findings.gpus[0].throttled_s - expected_s) < 1e-6 * expected_s);
	assert_true(drawn_s > 5 * covered_s); // some bands were joined; otherwise this tests nothing
	finish(&run, &findings, &charts);
}

static struct run_span lane_spans[] = {
	{.id = 1, .pid = 7, .tid = 7, .name = "outer"},
	{.id = 2, .pid = 7, .tid = 7, .name = "inner"},
	{.id = 3, .pid = 7, .tid = 7, .name = "crossing"},
	{.id = 4, .pid = 7, .tid = 8, .name = "open"},
	{.id = 5, .pid = 7, .tid = 7, .name = "range", .kind = SPAN_RANGE},
	{.id = 6, .pid = 7, .tid = 8, .name = "range", .kind = SPAN_RANGE},
	{.id = 7, .pid = 7, .tid = 7, .name = "nothing"},
};

static void build_spans(struct run *run)
{
	static const double begins_s[] = {1, 2, 3, 6, 0, 4, 9}, ends_s[] = {5, 3, 7, 0, 5, 8, 9};
	build_simple(run, 101);
	build_cpu(run, 1, 0, 0, 1);
	build_stamps(build_metered(run, "package-0", DOMAIN_PACKAGE, 20));
	for (size_t i = 0; i < ARRAY_SIZE(lane_spans); i++) {
		lane_spans[i].begin_ns = at_s(begins_s[i]);
		lane_spans[i].end_ns = i == 3 ? VALUE_MISSING : at_s(ends_s[i]);
		lane_spans[i].cpu_ns = VALUE_MISSING;
	}
	run->spans = lane_spans;
	run->n_spans = ARRAY_SIZE(lane_spans);
}

// Random stacks of 40 blocks: a block never has the colour of its neighbour, and the eight with the most energy have
// different colours.
static void tints_differ(void **state)
{
	enum { BLOCKS = 40, STACKS = 120 };
	static char names[BLOCKS][8];
	static struct block_finding blocks[BLOCKS];
	static struct stack_finding stacks[STACKS];
	for (size_t b = 0; b < BLOCKS; b++) {
		snprintf(names[b], sizeof(names[b]), "b%02zu", b);
		blocks[b] = (struct block_finding){.name = names[b],
			.total_j = b == 3 ? (double)NAN : (double)(b * 17 % 41)};
	}
	stacks[0] = (struct stack_finding){.parent = STACK_NONE, .name = "python3"};
	for (uint32_t s = 1; s < STACKS; s++) // the inner one has less energy or more: both occur
		stacks[s] = (struct stack_finding){.parent = s < 6 ? 0 : s / 6, .name = names[s * 7 % BLOCKS]};
	struct run run;
	struct findings findings;
	struct charts charts;
	build_simple(&run, 11);
	build_cpu(&run, 1, 0, 0, 1);
	assert_int_equal(findings_make(&run, &findings), 0);
	findings.blocks = blocks;
	findings.n_blocks = BLOCKS;
	findings.stacks = stacks;
	findings.n_stacks = STACKS;
	assert_int_equal(charts_make(&findings, NULL, &charts), 0);
	for (uint32_t s = 1; s < STACKS; s++) {
		uint32_t block = findings_block(&findings, stacks[s].name);
		uint32_t around = findings_block(&findings, stacks[stacks[s].parent].name);
		assert_true(charts.block_colors[block] < CHART_BLOCK_COLORS);
		if (around != UINT32_MAX && around != block)
			assert_int_not_equal(charts.block_colors[block], charts.block_colors[around]);
	}
	unsigned int seen = 0;
	for (size_t b = 0; b < BLOCKS; b++)
		if (blocks[b].total_j > 32) // of 0 … 40 the eight largest
			seen |= 1U << charts.block_colors[b];
	assert_int_equal(seen, 255);
	finish(&run, &findings, &charts);
}

static void lanes(void **state)
{
	static const struct row {
		uint32_t depth;
		bool is_range;
		size_t n, span;
		double from_s, to_s, energy_j;
	} rows[] = {
		// each lane's first item
		{0, false, 2, 0, 1, 5, 80},
		{1, false, 2, 1, 2, 3, 20},
		{0, false, 1, 3, 6, 10, (double)NAN},
		{0, true, 1, 4, 0, 5, 100},
		{1, true, 1, 5, 4, 8, 80},
	};
	struct run run;
	struct findings findings;
	struct charts charts;
	build_spans(&run);
	make(&run, NULL, &findings, &charts);
	assert_int_equal(charts.n_lanes, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct chart_lane *lane = &charts.lanes[i];
		const struct chart_item *item = &lane->items[0];
		assert_int_equal(lane->depth, rows[i].depth);
		assert_int_equal(lane->is_range, rows[i].is_range);
		assert_int_equal(lane->n_items, rows[i].n);
		assert_int_equal(item->span, rows[i].span);
		assert_near(item->from_s, rows[i].from_s);
		assert_near(item->to_s, rows[i].to_s);
		if (isnan(rows[i].energy_j))
			assert_true(isnan(item->energy_j) && item->is_open);
		else
			assert_near(item->energy_j, rows[i].energy_j);
	}
	finish(&run, &findings, &charts);
}

// A block with one call: span and block have the same energy and error.
static void span_energies(void **state)
{
	struct run run;
	struct findings findings;
	double *energy_j, *error_j;
	build_spans(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(spans_energy(&findings, run.arena, &energy_j, &error_j), 0);
	for (size_t b = 0; b < findings.n_blocks; b++)
		for (size_t i = 0; i < run.n_spans; i++)
			if (findings.blocks[b].calls == 1 && strcmp(findings.blocks[b].name, run.spans[i].name) == 0) {
				assert_close(energy_j[i], findings.blocks[b].total_j);
				assert_close(error_j[i], findings.blocks[b].error_j);
			}
	assert_true(isnan(energy_j[3]) && isnan(error_j[3]));
	assert_true(energy_j[6] == 0);
	findings_finish(&findings);
	build_finish(&run);
}

// Thirty names with one report each, and the last of them with a thousand: it gets a chart, and 23 of the others.
static void metrics_with_most_reports(void **state)
{
	enum { NAMES = 30, MANY = 1000 };
	static char names[NAMES][8];
	static struct run_user_metric reports[NAMES + MANY];
	struct run run;
	struct findings findings;
	struct charts charts;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	for (size_t i = 0; i < NAMES; i++) {
		snprintf(names[i], sizeof(names[i]), "a%02zu", i);
		reports[i] = (struct run_user_metric){.t_ns = at_s(1), .name = names[i], .value = 1};
	}
	for (size_t i = 0; i < MANY; i++)
		reports[NAMES + i] = (struct run_user_metric){.t_ns = at_s((double)i / 200),
			.name = "zz_loss",
			.value = 2};
	run.user_metrics = reports;
	run.n_user_metrics = NAMES + MANY;
	make(&run, NULL, &findings, &charts);
	size_t n = 0;
	for (size_t i = 0; i < charts.n_charts; i++)
		n += strncmp(charts.charts[i].id, "metric:", strlen("metric:")) == 0;
	assert_int_equal(n, 24);
	assert_non_null(charts_find(&charts, "metric:zz_loss"));
	assert_non_null(charts_find(&charts, "metric:a22"));
	assert_null(charts_find(&charts, "metric:a23"));
	finish(&run, &findings, &charts);
}

// Eight GPUs: mean, lowest and highest of all; three are drawn one by one.
static void gpus_have_a_mean(void **state)
{
	for (size_t n = 3; n <= 8; n += 5) {
		struct run run;
		struct findings findings;
		struct charts charts;
		build_simple(&run, 101);
		build_cpu(&run, 1, 0, 0, 1);
		for (size_t g = 0; g < n; g++) {
			char name[16];
			snprintf(name, sizeof(name), "gpu-%zu", g);
			struct run_device *gpu = build_powered(&run, name, DOMAIN_GPU, 100);
			for (size_t i = 0; i < run.n; i++)
				gpu->values[DEVICE_UTILIZATION][i] = (int64_t)(10 * g);
		}
		make(&run, NULL, &findings, &charts);
		const struct chart_series *mean = series_of(&charts, "gpu_utilization", "mean");
		assert_int_equal(mean != NULL, n == 8);
		if (mean != NULL)
			assert_true(mean->mean[50] == 35 && mean->low[50] == 0 && mean->high[50] == 70);
		finish(&run, &findings, &charts);
	}
}

int main(void)
{
	struct rows tests = {0};
	static const bool by_counter = true, by_power = false;
	rows_add(&tests, "peak of 30 ms in a chart of a minute, counter: in three buckets", short_peak,
		&by_counter);
	rows_add(&tests, "peak of 30 ms in a chart of a minute, power readings: in three buckets", short_peak,
		&by_power);
	ROWS_ADD_ONE(&tests, "pauses between segments: no room on the axis", pauses_are_cut);
	ROWS_ADD_ONE(&tests, "bands: throttling, unreadable device", bands_tell);
	ROWS_ADD_ONE(&tests, "bands: joined ones cover the throttled time, no gaps and pauses",
		bands_cover_what_was_held_back);
	ROWS_ADD_ONE(&tests, "lanes: nested, crossing and open spans, ranges side by side", lanes);
	ROWS_ADD_ONE(&tests, "metrics: charts for those with the most reports, ties by name",
		metrics_with_most_reports);
	ROWS_ADD_ONE(&tests, "eight GPUs: a line for their mean; three GPUs: a line each", gpus_have_a_mean);
	ROWS_ADD_ONE(&tests,
		"colours: blocks differ from their neighbours, the eight with the most energy from each other",
		tints_differ);
	ROWS_ADD_ONE(&tests, "span energy and error: equal to those of a block with this single call", span_energies);
	ROWS_ADD_ONE(&tests,
		"1,000 random runs: power integrates to each energy, means lie between minimum and maximum", any_run);
	return rows_run(&tests, "charts");
}
