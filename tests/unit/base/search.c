#include "base/search.h"

#include "base/util.h"
#include "rows.h"

#include <limits.h>

static const int64_t numbers[] = {-7, -7, 0, 3, 3, 3, INT64_MAX};
static const pid_t pids[] = {1, 2, 40, INT_MAX};

static const struct i64_row {
	const char *teaches;
	size_t n; // of the numbers
	int64_t key;
	size_t expected;
} i64_rows[] = {
	{"numbers: empty array: position 0", 0, 3, 0},
	{"numbers: several equal values: the first one", ARRAY_SIZE(numbers), 3, 3},
	{"numbers: equal values at the start", ARRAY_SIZE(numbers), -7, 0},
	{"numbers: value between two: the later one", ARRAY_SIZE(numbers), 1, 3},
	{"numbers: value before all", ARRAY_SIZE(numbers), INT64_MIN, 0},
	{"numbers: the last value", ARRAY_SIZE(numbers), INT64_MAX, 6},
	{"numbers: value greater than all: n", ARRAY_SIZE(numbers) - 1, 4, ARRAY_SIZE(numbers) - 1},
};

static void check_i64(void **state)
{
	const struct i64_row *row = *state;
	assert_int_equal(search_i64(numbers, row->n, row->key), row->expected);
}

static void check_pids(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(search_first(pids, ARRAY_SIZE(pids), sizeof(pids[0]), &pids[i], search_before_pid), i);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, i64_rows, check_i64);
	ROWS_ADD_ONE(&tests, "pids: each is found", check_pids);
	return rows_run(&tests, "search");
}
