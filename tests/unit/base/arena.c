#include "base/arena.h"

#include "rows.h"

#include <stdint.h>
#include <string.h>

static void aligned_and_zeroed(void **state)
{
	struct arena *arena = arena_new();
	assert_non_null(arena);
	for (size_t size = 1; size < 300; size += 7) {
		unsigned char *bytes = arena_alloc(arena, size, 1);
		assert_non_null(bytes);
		assert_int_equal((uintptr_t)bytes % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(bytes[i], 0);
		memset(bytes, 0xff, size);
	}
	arena_free(arena);
}

static void blocks_do_not_overlap(void **state)
{
	enum { COUNT = 500, SIZE = 100 };
	struct arena *arena = arena_new();
	unsigned char *all[COUNT];
	for (int i = 0; i < COUNT; i++) {
		all[i] = arena_alloc(arena, SIZE, 1);
		memset(all[i], i & 0xff, SIZE);
	}
	for (int i = 0; i < COUNT; i++)
		for (int at = 0; at < SIZE; at++)
			assert_int_equal(all[i][at], i & 0xff);
	arena_free(arena);
}

static void larger_than_a_block(void **state)
{
	enum { LARGE = 1 << 20 };
	struct arena *arena = arena_new();
	char *large = arena_alloc(arena, LARGE, 1);
	assert_non_null(large);
	memset(large, 1, LARGE);
	assert_non_null(arena_alloc(arena, 1, 1));
	arena_free(arena);
}

static void overflow_is_refused(void **state)
{
	struct arena *arena = arena_new();
	assert_null(arena_alloc(arena, SIZE_MAX / 2, 3));
	assert_null(arena_alloc(arena, SIZE_MAX, 1));
	assert_null(arena_alloc(arena, SIZE_MAX - 16, 1));
	arena_free(arena);
}

static void text_is_copied(void **state)
{
	struct arena *arena = arena_new();
	char text[] = "package-0";
	char *copy = arena_text(arena, text);
	text[0] = 'X';
	assert_string_equal(copy, "package-0");
	assert_null(arena_text(arena, NULL));
	arena_free(arena);
}

static void text_is_printed(void **state)
{
	enum { LONG = 100000 };
	struct arena *arena = arena_new();
	assert_string_equal(arena_printf(arena, "rank %d of %s", 7, "a job"), "rank 7 of a job");
	assert_string_equal(arena_printf(arena, "%s", ""), "");
	const char *text = arena_printf(arena, "%*d", LONG, 1);
	assert_int_equal(strlen(text), LONG);
	assert_int_equal(text[LONG - 1], '1');
	arena_free(arena);
}

static void nothing_to_free(void **state)
{
	arena_free(NULL);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "memory is aligned for any type and zeroed", aligned_and_zeroed);
	ROWS_ADD_ONE(&tests, "no two allocations share a byte", blocks_do_not_overlap);
	ROWS_ADD_ONE(&tests, "one allocation may be larger than a block", larger_than_a_block);
	ROWS_ADD_ONE(&tests, "n * size that does not fit gives NULL", overflow_is_refused);
	ROWS_ADD_ONE(&tests, "texts are copied; NULL stays NULL", text_is_copied);
	ROWS_ADD_ONE(&tests, "formatted texts have exactly the length they need", text_is_printed);
	ROWS_ADD_ONE(&tests, "arena_free(NULL) is allowed", nothing_to_free);
	return rows_run(&tests, "arena");
}
