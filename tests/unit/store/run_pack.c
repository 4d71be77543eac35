/* Packed columns of a loaded run, compared with the original values. */
#include "rows.h"
#include "store/run_read.h"

#include <math.h>

enum { ROWS = 3 * VALUE_CHUNK + 17, COLUMNS = 2 };

static int64_t even(size_t i)
{
	return INT64_C(4000000000) + (int64_t)i * 8400000;
}

static int64_t noisy(size_t i)
{
	return (int64_t)(i * 2654435761U % 1000) - 500;
}

static int64_t sparse(size_t i)
{
	return i % 10 == 3 ? (int64_t)i * 1000003 : VALUE_MISSING;
}

static int64_t late(size_t i)
{
	return i >= 2 * VALUE_CHUNK + 5 ? -1 : VALUE_MISSING;
}

static int64_t widest(size_t i) // no difference of two of them is a number
{
	static const int64_t values[] = {INT64_MAX, INT64_MIN + 1, 0, VALUE_MISSING, -1, 255, 256};
	return values[i % (sizeof(values) / sizeof(values[0]))];
}

static int64_t edge(size_t i) // with a missing value 256 codes do not fit into a byte
{
	return i % VALUE_CHUNK == 0 ? 0 : i % VALUE_CHUNK == 1 ? 255 : i % VALUE_CHUNK == 2 ? VALUE_MISSING : 128;
}

static int64_t none(size_t i)
{
	return VALUE_MISSING;
}

static const struct pack_row {
	const char *teaches;
	int64_t (*value)(size_t i);
	double max_bytes; // a row, of a chunk
} pack_rows[] = {
	{"counter that grows evenly: no byte for a row", even, 0},
	{"gauge: as many bytes as its range needs", noisy, 2},
	{"metric that is read seldom: values only where it was read", sparse, 4},
	{"column that begins late: missing before", late, 1},
	{"values as far apart as possible: stored unchanged", widest, 8},
	{"missing value: differs from every value", edge, 2},
	{"column without a value: no memory", none, 0},
};

static void check_pack(void **state)
{
	const struct pack_row *row = *state;
	static const size_t columns[COLUMNS] = {1, 0};
	const struct value_chunk **packed[COLUMNS] = {NULL};
	struct value_packer packer = {.arena = arena_new(), .capacity = ROWS};
	for (size_t i = 0; i < ROWS; i++) {
		int64_t *values = value_packer_row(&packer, COLUMNS, i);
		assert_non_null(values);
		values[0] = row->value(i);
		values[1] = (int64_t)i;
		if ((i + 1) % VALUE_CHUNK == 0 || i + 1 == ROWS)
			assert_true(value_packer_flush(&packer, columns, packed, i + 1));
	}
	for (size_t i = 0; i < ROWS; i++) {
		assert_int_equal(values_at((struct run_values){.chunks = packed[1]}, i), row->value(i));
		assert_int_equal(values_at((struct run_values){.chunks = packed[0]}, i), i);
	}
	assert_int_equal(packed[1] == NULL, row->value == none);
	for (size_t c = 0; packed[1] != NULL && c < ROWS / VALUE_CHUNK; c++)
		assert_true(packed[1][c] == NULL || (double)packed[1][c]->width <= row->max_bytes);
	free(packer.rows);
	arena_free(packer.arena);
}

static void unpacks(void **state)
{
	const struct value_chunk *chunk;
	const struct value_chunk **packed[1] = {NULL};
	static const size_t column = RUN_MAIN_RSS;
	struct run run = {.n = 2, .arena = arena_new()};
	struct value_packer packer = {.arena = run.arena, .capacity = 2};
	value_packer_row(&packer, 1, 0)[0] = 7;
	value_packer_row(&packer, 1, 1)[0] = VALUE_MISSING;
	assert_true(value_packer_flush(&packer, &(size_t){0}, packed, 2));
	chunk = packed[0][0];
	run.packed[column] = &chunk;
	assert_int_equal(run_unpack(&run), 0);
	assert_int_equal(run.values[column][0], 7);
	assert_int_equal(run.values[column][1], VALUE_MISSING);
	assert_int_equal(run.values[RUN_MAIN_CPU][1], VALUE_MISSING);
	free(packer.rows);
	arena_free(run.arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, pack_rows, check_pack);
	ROWS_ADD_ONE(&rows, "packed columns of a run: become plain ones", unpacks);
	return rows_run(&rows, "packed columns");
}
