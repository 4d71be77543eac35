#include "analysis/bench/bench.h"

#include "rows.h"

#include <math.h>
#include <stdbool.h>

enum { N_MAX = 8, COMMANDS_MAX = 3 };

#define UNKNOWN                                                                                                        \
	{                                                                                                              \
		NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN                                                                 \
	}
static const double unknown[N_MAX] = UNKNOWN;

static const struct estimate_row {
	const char *teaches;
	double values[N_MAX];
	size_t n, known;
	double median, low, high, confidence;
} estimates[] = {
	{"one run: no interval", {2}, 1, 1, 2, NAN, NAN, NAN},
	{"two runs: the interval contains the true median in half of all cases", {2, 3}, 2, 2, 2.5, 2, 3, 0.5},
	{"three runs: the interval contains the true median in three of four cases", {3, 1, 2}, 3, 3, 2, 1, 3, 0.75},
	{"five runs: the interval is their range, slightly below 95 %", {5, 1, 4, 2, 3}, 5, 5, 3, 1, 5, 0.9375},
	{"equal runs: interval of width 0", {7, 7, 7, 7, 7, 7, 7, 7}, 8, 8, 7, 7, 7, 0.95},
	{"run without a value: left out", {1, NAN, 3}, 3, 2, 2, 1, 3, 0.5},
	{"no run has a value: unknown", UNKNOWN, 8, 0, NAN, NAN, NAN, NAN},
};

static bool same(double a, double b)
{
	return isnan(a) ? isnan(b) : fabs(a - b) < 1e-12;
}

static void check_estimate(void **state)
{
	const struct estimate_row *row = *state;
	const struct bench_series series = {{row->values, unknown, unknown, unknown}, row->n};
	struct bench_findings findings;
	assert_int_equal(bench_analyse(&series, 1, false, 1, &findings), 0);
	const struct bench_estimate *e = &findings.estimates[0][BENCH_TIME];
	assert_int_equal(e->n, row->known);
	assert_true(same(e->median, row->median));
	assert_true(same(e->low, row->low) && same(e->high, row->high));
	assert_true(same(e->confidence, row->confidence));
	assert_int_equal(findings.n_comparisons, 0);
	bench_findings_finish(&findings);
}

static const struct comparison_row {
	const char *teaches;
	double a[N_MAX], b[N_MAX];
	size_t n;
	bool different;
	double ratio, p;
	bool effect_known;
} comparisons[] = {
	{"each run takes twice as long: ratio 2", {1, 1.01, 0.99, 1.02, 0.98}, {2, 2.02, 1.98, 2.04, 1.96}, 5, true, 2,
		2.0 / 252, true},
	{"each run takes half as long: ratio 0.5", {2, 2.02, 1.98, 2.04, 1.96}, {1, 1.01, 0.99, 1.02, 0.98}, 5, true,
		0.5, 2.0 / 252, true},
	{"same runs: ratio 1", {1, 1.01, 0.99, 1.02, 0.98}, {1, 1.01, 0.99, 1.02, 0.98}, 5, false, 1, 1, true},
	{"three runs each: not enough for a significant difference, which is reported", {1, 1.01, 0.99},
		{2, 2.02, 1.98}, 3, false, 2, 0.1, false},
	{"no scatter: detectable difference unknown", {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, 5, false, 1, 1, false},
	{"median of 0: no ratio", {0, 0, 0, 0, 0}, {1, 1.01, 0.99, 1.02, 0.98}, 5, false, NAN, 2.0 / 252, false},
};

static void check_comparison(void **state)
{
	const struct comparison_row *row = *state;
	const struct bench_series series[] = {
		{{row->a, unknown, unknown, unknown}, row->n},
		{{row->b, unknown, unknown, unknown}, row->n},
	};
	struct bench_findings findings;
	assert_int_equal(bench_analyse(series, 2, false, 1, &findings), 0);
	assert_int_equal(findings.n_comparisons, 1); // of the time; the energy is unknown
	const struct bench_comparison *c = &findings.comparisons[0];
	assert_int_equal(c->quantity, BENCH_TIME);
	assert_int_equal(c->different, row->different);
	assert_true(same(c->ratio, row->ratio));
	assert_true(same(c->p, row->p) && same(c->p_adjusted, row->p));
	assert_int_equal(!isnan(c->smallest_effect_percent), row->effect_known);
	if (!isnan(c->low))
		assert_true(c->low <= c->ratio && c->ratio <= c->high);
	bench_findings_finish(&findings);
}

static void three_commands(struct bench_series *series)
{
	static const double values[COMMANDS_MAX][5] = {{1, 1.01, 0.99, 1.02, 0.98}, {1.1, 1.11, 1.09, 1.12, 1.08},
		{2, 2.02, 1.98, 2.04, 1.96}};
	for (size_t c = 0; c < COMMANDS_MAX; c++)
		series[c] = (struct bench_series){{values[c], values[c], unknown, unknown}, 5};
}

static void check_pairs(void **state)
{
	struct bench_series series[COMMANDS_MAX];
	struct bench_findings findings;
	three_commands(series);
	assert_int_equal(bench_analyse(series, 3, false, 1, &findings), 0);
	assert_int_equal(findings.n_comparisons, 2 * 2);
	assert_int_equal(findings.comparisons[1].a, 0);
	assert_int_equal(findings.comparisons[1].b, 2);
	assert_true(same(findings.comparisons[1].p_adjusted, 2 * 2.0 / 252)); // two comparisons for each quantity
	bench_findings_finish(&findings);
	assert_int_equal(bench_analyse(series, 3, true, 1, &findings), 0);
	assert_int_equal(findings.n_comparisons, 3 * 2);
	assert_int_equal(findings.comparisons[2].a, 1);
	assert_int_equal(findings.comparisons[2].b, 2);
	bench_findings_finish(&findings);
}

static void check_seed(void **state)
{
	struct bench_series series[COMMANDS_MAX];
	struct bench_findings first, second;
	three_commands(series);
	assert_int_equal(bench_analyse(series, 3, false, 42, &first), 0);
	assert_int_equal(bench_analyse(series, 3, false, 42, &second), 0);
	for (size_t i = 0; i < first.n_comparisons; i++) {
		assert_true(first.comparisons[i].low == second.comparisons[i].low);
		assert_true(
			first.comparisons[i].smallest_effect_percent == second.comparisons[i].smallest_effect_percent);
	}
	bench_findings_finish(&first);
	bench_findings_finish(&second);
}

static const struct width_row {
	const char *teaches;
	double time_s[N_MAX], energy_j[N_MAX];
	size_t n;
	double percent;
} widths[] = {
	{"interval width: half of the energy's interval", {1, 1, 1, 1, 1}, {9, 9.5, 10, 10.5, 11}, 5, 10},
	{"interval width: that of the time if an energy is unknown", {9, 9.5, 10, 10.5, 11}, {1, 1, NAN, 1, 1}, 5, 10},
	{"interval width of one run: unknown", {1}, {1}, 1, INFINITY},
	{"interval width relative to 0: unknown", {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, 5, INFINITY},
};

static void check_width(void **state)
{
	const struct width_row *row = *state;
	const struct bench_series series = {{row->time_s, row->energy_j, unknown, unknown}, row->n};
	double percent;
	assert_int_equal(bench_width_percent(&series, 1, 1, &percent), 0);
	assert_true(isinf(row->percent) ? isinf(percent) : same(percent, row->percent));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, estimates, check_estimate);
	ROWS_ADD(&tests, comparisons, check_comparison);
	ROWS_ADD_ONE(&tests, "each against the first, or all pairs; Holm's correction counts the comparisons of a "
		"quantity",
		check_pairs);
	ROWS_ADD_ONE(&tests, "same data and seed: same result", check_seed);
	ROWS_ADD(&tests, widths, check_width);
	return rows_run(&tests, "bench");
}
