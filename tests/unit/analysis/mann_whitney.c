#include "analysis/bench/mann_whitney.h"
#include "analysis/bench/order.h"

#include "rows.h"

#include <math.h>
#include <string.h>

enum { VALUES_MAX = 8 };

/* Reference value of p: every way to choose n_a of the values as "a", and how far its U is from the mean. Slow and
 * simple, so that it can check the fast one. */
static double u_of(const double *values, size_t n, unsigned in_a)
{
	double u = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if ((in_a >> i & 1) && !(in_a >> j & 1))
				u += values[j] > values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
	return u;
}

static double p_by_hand(const double *a, size_t n_a, const double *b, size_t n_b)
{
	double values[2 * VALUES_MAX], mean = (double)(n_a * n_b) / 2, as_far = 0, all = 0;
	size_t n = n_a + n_b;
	for (size_t i = 0; i < n; i++)
		values[i] = i < n_a ? a[i] : b[i - n_a];
	double distance = fabs(u_of(values, n, (1u << n_a) - 1) - mean);
	for (unsigned in_a = 0; in_a < 1u << n; in_a++)
		if ((size_t)__builtin_popcount(in_a) == n_a) {
			all++;
			as_far += fabs(u_of(values, n, in_a) - mean) >= distance - 1e-9;
		}
	return as_far / all;
}

static const struct test_row {
	const char *teaches;
	size_t n_a, n_b;
	double a[VALUES_MAX], b[VALUES_MAX];
	double u, p; // p < 0: reference only
} tests_of_two[] = {
	{"3 and 3, all of b greater: 2 of the 20 choices are as extreme", 3, 3, {1, 2, 3}, {4, 5, 6}, 9, 2.0 / 20},
	{"4 and 4, all of b greater: 2 of 70", 4, 4, {1, 2, 3, 4}, {5, 6, 7, 8}, 16, 2.0 / 70},
	{"5 and 5, all of b less: 2 of 252", 5, 5, {6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}, 0, 2.0 / 252},
	{"5 and 5, U of 2: 4 choices on either side, the tables' limit at 5 %", 5, 5, {1, 2, 3, 5, 6},
		{4, 7, 8, 9, 10}, 23, 8.0 / 252},
	{"5 and 5, U of 3: not significant", 5, 5, {1, 2, 3, 4, 8}, {5, 6, 7, 9, 10}, 22, 14.0 / 252},
	{"2 and 6: different sizes", 2, 6, {1, 2}, {3, 4, 5, 6, 7, 8}, 12, 2.0 / 28},
	{"6 and 2: same p with the samples exchanged", 6, 2, {3, 4, 5, 6, 7, 8}, {1, 2}, 0, 2.0 / 28},
	{"all values equal: no difference", 4, 4, {2, 2, 2, 2}, {2, 2, 2, 2}, 8, 1},
	{"one value each", 1, 1, {1}, {2}, 1, 1},
	{"equal values in both samples count half", 4, 4, {1, 2, 2, 3}, {2, 3, 4, 4}, 13.5, -1},
	{"two values only, as of a coarse counter", 5, 5, {1, 1, 1, 1, 2}, {1, 2, 2, 2, 2}, 20, -1},
	{"ties and different sizes: asymmetric distribution", 3, 6, {1, 1, 5}, {1, 2, 2, 3, 5, 5}, 12, -1},
	{"ties and different sizes, samples exchanged", 6, 3, {1, 2, 2, 3, 5, 5}, {1, 1, 5}, 6, -1},
	{"8 and 8, interleaved", 8, 8, {1, 3, 5, 7, 9, 11, 13, 15}, {2, 4, 6, 8, 10, 12, 14, 16}, 36, -1},
};

static void check_test(void **state)
{
	const struct test_row *row = *state;
	struct mann_whitney result;
	assert_int_equal(mann_whitney(row->a, row->n_a, row->b, row->n_b, &result), 0);
	assert_true(result.exact);
	assert_true(result.u == row->u);
	double by_hand = p_by_hand(row->a, row->n_a, row->b, row->n_b);
	assert_true(fabs(result.p - by_hand) < 1e-12);
	if (row->p >= 0)
		assert_true(fabs(result.p - row->p) < 1e-12);
}

static void check_large(void **state)
{
	// 50 values on a side are counted exactly, 51 are approximated: p of nearly the same data must nearly agree.
	double a[51], b[51];
	struct mann_whitney exact, normal;
	for (size_t i = 0; i < 51; i++) {
		a[i] = (double)i;
		b[i] = (double)i + 6.5;
	}
	assert_int_equal(mann_whitney(a, 50, b, 50, &exact), 0);
	assert_int_equal(mann_whitney(a, 51, b, 51, &normal), 0);
	assert_true(exact.exact && !normal.exact);
	assert_true(exact.p > 0.001 && exact.p < 0.05);
	assert_true(fabs(normal.p / exact.p - 1) < 0.15);
}

static void check_nothing(void **state)
{
	struct mann_whitney result;
	assert_int_equal(mann_whitney(NULL, 0, NULL, 0, &result), 0);
	assert_true(isnan(result.p));
}

static const struct least_row {
	const char *teaches;
	size_t n_a, n_b;
	double alpha;
	size_t least_u; // critical values from tables: n_a n_b less this
} leasts[] = {
	{"tables, two-sided 5 %: 3 and 3 are never significant", 3, 3, 0.05, 10},
	{"4 and 4: U = 0", 4, 4, 0.05, 16},
	{"5 and 5: U <= 2", 5, 5, 0.05, 23},
	{"8 and 8: U <= 13", 8, 8, 0.05, 51},
	{"10 and 10: U <= 23", 10, 10, 0.05, 77},
	{"20 and 20: U <= 127", 20, 20, 0.05, 273},
	{"5 and 10: U <= 8", 5, 10, 0.05, 42},
	{"10 and 10 at 1 %: U <= 16", 10, 10, 0.01, 84},
};

static void check_min(void **state)
{
	const struct least_row *row = *state;
	size_t u;
	assert_int_equal(mann_whitney_min_u(row->n_a, row->n_b, row->alpha, &u), 0);
	assert_int_equal(u, row->least_u);
}

static const struct holm_row {
	const char *teaches;
	double p[3], adjusted[3];
} holms[] = {
	{"Holm: the smallest of three counts three times, the next twice", {0.01, 0.04, 0.02}, {0.03, 0.04, 0.04}},
	{"Holm: no p is adjusted below a smaller one", {0.02, 0.021, 0.022}, {0.06, 0.06, 0.06}},
	{"Holm: no p exceeds 1", {0.5, 0.9, 0.6}, {1, 1, 1}},
	{"Holm: comparisons without a test do not count", {0.01, NAN, 0.03}, {0.02, NAN, 0.03}},
};

static void check_holm(void **state)
{
	const struct holm_row *row = *state;
	double p[3] = {row->p[0], row->p[1], row->p[2]};
	assert_int_equal(holm_adjust(p, 3), 0);
	for (size_t i = 0; i < 3; i++)
		assert_true(isnan(row->adjusted[i]) ? isnan(p[i]) : fabs(p[i] - row->adjusted[i]) < 1e-12);
}

static const struct select_row {
	const char *teaches;
	double values[VALUES_MAX];
	size_t n;
} selects[] = {
	{"one value", {3}, 1},
	{"in order", {1, 2, 3, 4, 5}, 5},
	{"in reverse", {5, 4, 3, 2, 1, 0}, 6},
	{"all equal", {2, 2, 2, 2, 2, 2, 2}, 7},
	{"with ties", {2, 1, 2, 3, 1, 3, 2, 1}, 8},
};

static void check_select(void **state)
{
	const struct select_row *row = *state;
	double sorted[VALUES_MAX];
	memcpy(sorted, row->values, sizeof(sorted));
	order_sort(sorted, row->n);
	for (size_t which = 0; which < row->n; which++) {
		double values[VALUES_MAX];
		memcpy(values, row->values, sizeof(values));
		assert_true(order_select(values, row->n, which) == sorted[which]);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, tests_of_two, check_test);
	ROWS_ADD_ONE(&tests, "above 100 values: the normal approximation is used", check_large);
	ROWS_ADD_ONE(&tests, "no values: p unknown", check_nothing);
	ROWS_ADD(&tests, leasts, check_min);
	ROWS_ADD(&tests, holms, check_holm);
	ROWS_ADD(&tests, selects, check_select);
	return rows_run(&tests, "mann_whitney");
}
