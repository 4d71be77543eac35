#include "now/internal.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches;
	size_t room, n_added, ago;
	double expected; // of 1, 2, 3 … added one after the other
} rows[] = {
	{"nothing yet", 3, 0, 0, NAN},
	{"the last one", 3, 2, 0, 2},
	{"before the first there is nothing", 3, 2, 2, NAN},
	{"a full ring drops the oldest", 3, 5, 2, 3},
	{"and has no more than its room", 3, 5, 3, NAN},
	{"no history was asked for", 0, 5, 0, NAN},
	{"more than can be had is cut", 1000000, 700, NOW_HISTORY, NAN},
	{"… to the most there is", 1000000, 700, NOW_HISTORY - 1, 101},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct now_history history;
	assert_int_equal(now_history_open(&history, row->room), 0);
	for (size_t i = 0; i < row->n_added; i++)
		now_history_add(&history, (double)i + 1);
	double value = now_history_at(&history, row->ago);
	assert_true(isnan(row->expected) ? isnan(value) : value == row->expected);
	now_history_close(&history);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "history");
}
