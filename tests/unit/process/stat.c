#include "process/tree.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

static const struct process_units units = {.tick_ns = 10000000, .page_bytes = 4096};

#define NUMBERS "7 7 7 0 -1 4194304 120 30 4 2 11 5 40 10 20 0 3 0 98765 1000000 250 18446744073709551615"

static const struct row {
	const char *teaches, *line;
	int expected;
	const char *name;
	int ppid, own_ms, children_ms, threads, rss_pages;
} rows[] = {
	{"plain line: ticks become ns, pages become bytes", "42 (sh) S " NUMBERS, 0, "sh", 7, 160, 500, 3, 250},
	{"name ends at the last bracket", "42 (a) R 1 (b)) S " NUMBERS, 0, "a) R 1 (b)", 7, 160, 500, 3, 250},
	{"name with blanks and newlines", "42 (a b\nc) S " NUMBERS, 0, "a b\nc", 7, 160, 500, 3, 250},
	{"empty name", "42 () S " NUMBERS, 0, "", 7, 160, 500, 3, 250},
	{"name too long: truncated", "42 (kworker/u256:12-events_unbound_long) S " NUMBERS, 0,
		"kworker/u256:12-events_unbound_", 7, 160, 500, 3, 250},
	{"no brackets: refused", "42 sh S " NUMBERS, -EINVAL, NULL, 0, 0, 0, 0, 0},
	{"truncated line: refused", "42 (sh) S 7 7 7", -EINVAL, NULL, 0, 0, 0, 0, 0},
	{"words in place of numbers: refused", "42 (sh) S x " NUMBERS, -EINVAL, NULL, 0, 0, 0, 0, 0},
	{"empty line: refused", "", -EINVAL, NULL, 0, 0, 0, 0, 0},
	{"single bracket: refused", ")", -EINVAL, NULL, 0, 0, 0, 0, 0},
	{"nothing after the name: refused", "42 (sh)", -EINVAL, NULL, 0, 0, 0, 0, 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct process_stat stat;
	assert_int_equal(process_stat_parse(row->line, strlen(row->line), &units, &stat), row->expected);
	if (row->expected < 0)
		return;
	assert_string_equal(stat.name, row->name);
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.ppid, row->ppid);
	assert_int_equal(stat.own_ns / 1000000, row->own_ms);
	assert_int_equal(stat.children_ns / 1000000, row->children_ms);
	assert_int_equal(stat.threads, row->threads);
	assert_int_equal(stat.rss_bytes, row->rss_pages * 4096);
	assert_int_equal(stat.start_ticks, 98765);
	assert_int_equal(stat.minor_faults, 120);
	assert_int_equal(stat.children_minor_faults, 30);
	assert_int_equal(stat.major_faults, 4);
	assert_int_equal(stat.children_major_faults, 2);
}

#define TO_RSS "S 7 7 7 0 -1 4194304 120 30 4 2 11 5 40 10 20 0 3 0 98765 1000000 250 "
static const struct stack {
	const char *teaches, *line;
	uint64_t address;
} stacks[] = {
	{"last CPU: the 28th field", "42 (sh) " TO_RSS "18446744073709551615 94000 94999 140722334455664 0 0",
		140722334455664},
	{"last CPU: independent of the name",
		"42 (a) 1 2 (b)) " TO_RSS "18446744073709551615 94000 94999 140722334455664 0", 140722334455664},
	{"kernel hides the field from other users: unknown", "42 (sh) " TO_RSS "18446744073709551615 1 1 0 0 0", 0},
	{"line ends before the field: unknown", "42 (sh) " TO_RSS "18446744073709551615 1", 0},
	{"last CPU: empty line", "", 0},
};

static void check_stack(void **state)
{
	const struct stack *row = *state;
	assert_true(process_stat_start_stack(row->line, strlen(row->line)) == row->address);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, stacks, check_stack);
	return rows_run(&tests, "stat");
}
