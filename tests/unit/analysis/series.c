#include "analysis/compare/series.h"

#include "base/util.h"

#include "rows.h"

static const struct row {
	const char *teaches;
	size_t n;
	double values[6];
	double min, max, mean, std, total;
} table[] = {
	{"plain", 4, {1, 2, 3, 4}, 1, 4, 2.5, 1.118033988749895, 10},
	{"standard deviation: that of the population", 2, {1, 3}, 1, 3, 2, 1, 4},
	{"standard deviation of one value: 0", 1, {7}, 7, 7, 7, 0, 7},
	{"unknown values: left out", 4, {(double)NAN, 2, (double)NAN, 4}, 2, 4, 3, 1, 6},
	{"only unknown values", 2, {(double)NAN, (double)NAN}, (double)NAN, (double)NAN, (double)NAN, (double)NAN,
		(double)NAN},
	{"no values: unknown", 0, {0}, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN},
	{"equal values: deviation exactly 0, though 0.1 is not exact in binary", 6, {0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 0.1,
		0.1, 0.1, 0, 0.6},
	{"large offset: no loss of precision", 3, {1e15 + 1, 1e15 + 2, 1e15 + 3}, 1e15 + 1, 1e15 + 3, 1e15 + 2,
		0.816496580927726, 3e15 + 6},
	{"values that cancel out: the small one remains", 3, {1e16, 1, -1e16}, -1e16, 1e16, 1 / 3.0, 8164965809277260.0,
		1},
};

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-14 * fabs(b);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct value_stats stats = series_stats(row->values, &(struct slice){0, row->n}, 1);
	assert_true(same(stats.min, row->min) && same(stats.max, row->max));
	assert_true(same(stats.mean, row->mean));
	assert_true(same(stats.std, row->std));
	assert_true(same(stats.total, row->total));
}

static void in_pieces(void **state)
{
	const double values[] = {1, 100, 2, 100, 3};
	const struct slice slices[] = {{0, 1}, {2, 3}, {4, 5}};
	struct value_stats stats = series_stats(values, slices, ARRAY_SIZE(slices));
	assert_true(same(stats.mean, 2) && same(stats.max, 3) && same(stats.total, 6));
}

// Plain summation of a million times 0.1 is wrong in the tenth digit.
static void a_million(void **state)
{
	enum { N = 1000000 };
	double *values = calloc_array(N, sizeof(*values));
	assert_non_null(values);
	for (size_t i = 0; i < N; i++)
		values[i] = i % 2 == 0 ? 0.1 : 0.3;
	struct value_stats stats = series_stats(values, &(struct slice){0, N}, 1);
	assert_true(same(stats.total, 200000) && same(stats.mean, 0.2) && same(stats.std, 0.1));
	free(values);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD_ONE(&rows, "parts of a series", in_pieces);
	ROWS_ADD_ONE(&rows, "a million values: exact sum", a_million);
	return rows_run(&rows, "figures over series");
}
