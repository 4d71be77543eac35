/* Tests as rows: each row of a table becomes a cmocka test of its own, with its `teaches` field as its title.
 *
 *	static const struct row { const char *teaches; … } rows[] = { … };
 *	static void check(void **state) { const struct row *row = *state; … }
 *
 *	struct rows tests = {0};
 *	ROWS_ADD(&tests, rows, check);
 *	ROWS_ADD_ONE(&tests, "condition: expected result", function);
 *	return rows_run(&tests, "group"); */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

struct rows {
	struct CMUnitTest *tests; // owned
	size_t n;
};

static inline void rows_add(struct rows *rows, const char *name, CMUnitTestFunction function, const void *row)
{
	rows->tests = realloc(rows->tests, (rows->n + 1) * sizeof(*rows->tests));
	if (rows->tests == NULL)
		abort();
	// cmocka passes the row as `void **state`; checks use it as const again.
	rows->tests[rows->n++] = (struct CMUnitTest){.name = name,
		.test_func = function,
		.initial_state = (void *)(uintptr_t)row};
}

#define ROWS_ADD(rows, table, function)                                                                                \
	for (size_t row_ = 0; row_ < sizeof(table) / sizeof((table)[0]); row_++)                                       \
	rows_add(rows, (table)[row_].teaches, function, &(table)[row_])
#define ROWS_ADD_ONE(rows, teaches, function) rows_add(rows, teaches, function, NULL)

// Prints the reason on the TAP output, for the summary, and skips the current test.
#define SKIP_BECAUSE(reason)                                                                                           \
	do {                                                                                                           \
		printf("# skipped: " reason "\n");                                                                     \
		fflush(stdout);                                                                                        \
		skip();                                                                                                \
	} while (0)

static inline int rows_run(struct rows *rows, const char *group)
{
	int failed = _cmocka_run_group_tests(group, rows->tests, rows->n, NULL, NULL);
	free(rows->tests);
	return failed;
}
