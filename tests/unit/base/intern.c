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

// What a text ends in must bear on its hash: else all of these are looked through for each.
static void alike(void **state)
{
	enum { N = 20000 };
	struct arena *arena = arena_new();
	struct intern intern;
	intern_init(&intern, arena);
	for (int i = 0; i < N; i++) {
		char text[16];
		snprintf(text, sizeof(text), "foo%05d", i); // one word of 8 bytes
		assert_int_equal(intern_number(&intern, text, 8), i);
	}
	size_t far = 0;
	for (int i = 0; i < N; i++) {
		size_t home = intern.keys[i].hash & (intern.n_slots - 1), steps = 0;
		while (intern.slots[(home + steps) & (intern.n_slots - 1)] != (uint32_t)i + 1)
			steps++;
		far += steps;
	}
	assert_true(far < 4 * N);
	intern_finish(&intern);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD_ONE(&rows, "equal keys get equal numbers, by first appearance", numbers);
	ROWS_ADD_ONE(&rows, "a hundred thousand of them", very_many);
	ROWS_ADD_ONE(&rows, "texts of 8 bytes that end differently lie apart", alike);
	return rows_run(&rows, "interned keys");
}
