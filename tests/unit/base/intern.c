#include "base/intern.h"

#include "rows.h"

#include <stdio.h>
#include <string.h>

static void numbers(void **state)
{
	struct arena *arena = arena_new();
	struct intern intern;
	intern_init(&intern, arena);
	assert_int_equal(intern_number(&intern, "load", 4), 0);
	assert_int_equal(intern_number(&intern, "train", 5), 1);
	assert_int_equal(intern_number(&intern, "load", 4), 0);
	assert_int_equal(intern_number(&intern, "", 0), 2);
	assert_int_equal(intern_number(&intern, "load\0more", 9), 3);
	assert_string_equal(intern.keys[1].bytes, "train");
	intern_finish(&intern);
	arena_free(arena);
}

static void very_many(void **state)
{
	enum { N = 100000 };
	struct arena *arena = arena_new();
	struct intern intern;
	intern_init(&intern, arena);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < N; i++)
			assert_int_equal(intern_number(&intern, &i, sizeof(i)), i);
	assert_int_equal(intern.n, N);
	intern_finish(&intern);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD_ONE(&rows, "equal keys get equal numbers, by first appearance", numbers);
	ROWS_ADD_ONE(&rows, "a hundred thousand of them", very_many);
	return rows_run(&rows, "interned keys");
}
