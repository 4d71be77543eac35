#include "analysis/compare/compare.h"

#include "base/util.h"

#include "rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS_MAX = 5 };

/* Blocks of two sessions in any order, and how they match: merged names, one on a line, or the error. */
static const struct row {
	const char *teaches;
	const char *a[BLOCKS_MAX], *b[BLOCKS_MAX];
	const char *merged, *error;
	size_t warnings;
} table[] = {
	{"equal names match", {"load", "train"}, {"train", "load"}, "load\ntrain\n", NULL, 0},
	{"line numbers match in numerical order", {"a.py:10", "a.py:9"}, {"a.py:11", "a.py:100"},
		"a.py:11 -> a.py:9\na.py:10 -> a.py:100\n", NULL, 2},
	{"equal line numbers are not matched first", {"a.py:7", "a.py:9"}, {"a.py:9", "a.py:11"},
		"a.py:7 -> a.py:9\na.py:11 -> a.py:9\n", NULL, 2},
	{"merged names are sorted as texts", {"a.py:9"}, {"a.py:7"}, "a.py:7 -> a.py:9\n", NULL, 1},
	{"leading zeros: the same line number", {"a.py:007"}, {"a.py:7"}, "a.py:007 -> a.py:7\n", NULL, 1},
	{"line numbers larger than any integer", {"a.py:99999999999999999999999"}, {"a.py:1"},
		"a.py:1 -> a.py:99999999999999999999999\n", NULL, 1},
	{"line numbers do not change the order of names", {"a.py:9", "a.py:load", "b"}, {"b", "a.py:100", "a.py:load"},
		"a.py:100 -> a.py:9\na.py:load\nb\n", NULL, 1},
	{"different files: no match", {"a.py:9"}, {"b.py:9"}, NULL,
		"\"a.py:9\" of \"A\" does not match code block \"b.py:9\"", 0},
	{"function name: no line number", {"a.py:9"}, {"a.py:main"}, NULL, "\"a.py:main\" of \"B\"", 0},
	{"number without a colon: no line number", {"step 9"}, {"step 7"}, NULL, "\"step 7\" of \"B\"", 0},
	{"colon without a number: no line number", {"a.py:"}, {"a.py:7"}, NULL, "does not match", 0},
	{"different number of blocks: error", {"load", "train"}, {"load"}, NULL, "\"A\" has 2 and \"B\" has 1", 0},
	{"blocks in one session only: error", {"load"}, {NULL}, NULL, "\"A\" has 1 and \"B\" has 0", 0},
	{"no blocks at all", {NULL}, {NULL}, "", NULL, 0},
};

struct session {
	struct saved_block blocks[BLOCKS_MAX];
	double usage[BLOCKS_MAX], overall;
	const char *metric;
	struct saved_blocks results;
};

static void make(struct session *session, const char *const *names)
{
	*session = (struct session){.metric = "main_ram", .overall = 1};
	session->results = (struct saved_blocks){.metrics = &session->metric,
		.n_metrics = 1,
		.overall = &session->overall,
		.blocks = session->blocks};
	for (size_t i = 0; i < BLOCKS_MAX && names[i] != NULL; i++) {
		session->usage[i] = (double)i;
		session->blocks[i] = (struct saved_block){.name = names[i], .usage = &session->usage[i]};
		session->results.n_blocks++;
	}
}

static void check(void **state)
{
	const struct row *row = *state;
	struct session a, b;
	make(&a, row->a);
	make(&b, row->b);
	// In reverse order: the others are compared with the alphabetically first.
	const struct compare_session sessions[] = {{"B", &b.results}, {"A", &a.results}};
	struct arena *arena = arena_new();
	struct comparison comparison;
	struct wattle_error error = {0};
	int r = compare_make(sessions, ARRAY_SIZE(sessions), arena, &comparison, &error);
	assert_int_equal(r, row->error != NULL ? -EINVAL : 0);
	if (row->error != NULL) {
		assert_non_null(strstr(error.text, row->error));
	} else {
		char merged[512] = "";
		for (size_t i = 0; i < comparison.n_blocks; i++)
			snprintf(merged + strlen(merged), sizeof(merged) - strlen(merged), "%s\n",
				comparison.compute_time[i].name);
		assert_string_equal(merged, row->merged);
		assert_int_equal(comparison.n_warnings, row->warnings);
	}
	arena_free(arena);
}

/* Values of sessions A, B, C, D and their sorted order. */
static const struct order_row {
	const char *teaches;
	double values[4];
	const char *order;
} orders[] = {
	{"ascending", {3, 1, 4, 2}, "BDAC"},
	{"equal values: in the given order", {1, 1, 0, 1}, "CABD"},
	{"unknown values: last, in the given order", {(double)NAN, 2, (double)NAN, 1}, "DBAC"},
	{"below 0", {-1, 0, -2, 1}, "CABD"},
};

static void check_order(void **state)
{
	const struct order_row *row = *state;
	static const char *const names[] = {"A", "B", "C", "D"};
	static const char *const none[] = {NULL};
	struct session made[4];
	struct compare_session sessions[4];
	for (size_t i = 0; i < 4; i++) {
		make(&made[i], none);
		made[i].overall = row->values[i];
		sessions[i] = (struct compare_session){names[i], &made[i].results};
	}
	struct arena *arena = arena_new();
	struct comparison comparison;
	assert_int_equal(compare_make(sessions, 4, arena, &comparison, NULL), 0);
	char order[5] = "";
	for (size_t i = 0; i < 4; i++)
		order[i] = comparison.overall[0].values[i].session[0];
	assert_string_equal(order, row->order);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD(&rows, orders, check_order);
	return rows_run(&rows, "comparison");
}
