#include "monitor/internal.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches;
	size_t capacity, n_added, ago;
	double expected; // after adding 1, 2, 3 …
} rows[] = {
	{"empty ring", 3, 0, 0, NAN},
	{"last value", 3, 2, 0, 2},
	{"before the first value: nothing", 3, 2, 2, NAN},
	{"full ring: the oldest value is dropped", 3, 5, 2, 3},
	{"full ring: holds its capacity", 3, 5, 3, NAN},
	{"no history requested", 0, 5, 0, NAN},
	{"capacity above the maximum: reduced", 1000000, 700, MONITOR_HISTORY, NAN},
	{"capacity equal to the maximum", 1000000, 700, MONITOR_HISTORY - 1, 101},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct monitor_history history;
	assert_int_equal(monitor_history_open(&history, row->capacity), 0);
	for (size_t i = 0; i < row->n_added; i++)
		monitor_history_add(&history, (double)i + 1);
	double value = monitor_history_at(&history, row->ago);
	assert_true(isnan(row->expected) ? isnan(value) : value == row->expected);
	monitor_history_close(&history);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "history");
}
