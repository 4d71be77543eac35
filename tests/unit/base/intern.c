#include "base/intern.h"

#include "rows.h"

#include <stdbool.h>
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

// Sum of the probe distances of all keys.
static size_t steps_from_home(const struct intern *intern)
{
	size_t far = 0, mask = intern->n_slots - 1;
	for (size_t i = 0; i < intern->n; i++) {
		size_t steps = 0;
		while (intern->slots[(intern->keys[i].hash + steps) & mask] != (uint32_t)i + 1)
			steps++;
		far += steps;
	}
	return far;
}

// The last characters of a text must change its hash; otherwise lookups compare all of these.
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
	assert_true(steps_from_home(&intern) < 4 * N);
	intern_finish(&intern);
	arena_free(arena);
}

/* Keys that a multiplying hash maps to one slot whatever its seed is: a difference in the top bit of a word stays
 * there, the fold by 32 copies it to bit 31, and the next word cancels both. Each pair of words doubles the number
 * of such keys. */
static void chosen(void **state)
{
	enum { PAIRS = 13, N = 1 << PAIRS };
	struct arena *arena = arena_new();
	struct intern intern;
	intern_init(&intern, arena);
	for (int i = 0; i < N; i++) {
		uint64_t words[2 * PAIRS];
		for (int pair = 0; pair < PAIRS; pair++) {
			bool other = (i >> pair & 1) != 0;
			words[2 * pair] = other ? UINT64_C(1) << 63 : 0;
			words[2 * pair + 1] = other ? UINT64_C(1) << 63 | UINT64_C(1) << 31 : 0;
		}
		assert_int_equal(intern_number(&intern, words, sizeof(words)), i);
	}
	assert_true(steps_from_home(&intern) < 4 * N);
	intern_finish(&intern);
	arena_free(arena);
}

// An attacker who knows the slots in one table cannot choose keys that collide in the next one.
static void own_places(void **state)
{
	enum { N = 100 };
	struct arena *arena = arena_new();
	struct intern tables[2];
	for (size_t t = 0; t < 2; t++) {
		intern_init(&tables[t], arena);
		for (int i = 0; i < N; i++)
			assert_int_equal(intern_number(&tables[t], &i, sizeof(i)), i);
	}
	assert_int_equal(tables[0].n_slots, tables[1].n_slots);
	assert_memory_not_equal(tables[0].slots, tables[1].slots, tables[0].n_slots * sizeof(tables[0].slots[0]));
	intern_finish(&tables[0]);
	intern_finish(&tables[1]);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD_ONE(&rows, "equal keys get equal numbers, in order of first appearance", numbers);
	ROWS_ADD_ONE(&rows, "100,000 keys are all found", very_many);
	ROWS_ADD_ONE(&rows, "texts of 8 bytes with different endings do not collide", alike);
	ROWS_ADD_ONE(&rows, "keys chosen to collide are spread over the table", chosen);
	ROWS_ADD_ONE(&rows, "two tables store the same keys in different slots", own_places);
	return rows_run(&rows, "interned keys");
}
