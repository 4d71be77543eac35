#include "store/sql_guard.h"

#include "rows.h"

#define MIB ((int64_t)1 << 20)

static const struct row {
	const char *teaches;
	int64_t size, blocks, expected;
} rows[] = {
	{"empty file: nothing", 0, 0, 0},
	{"small file: its size", 4096, 8, 4096},
	{"large file: its size", 1024 * MIB, 1024 * MIB / 512, 1024 * MIB},
	{"compressed to a tenth: its size", 1024 * MIB, 1024 * MIB / 5120, 1024 * MIB},
	{"file system that reports no blocks: at most 64 MiB", 1024 * MIB, 0, 64 * MIB},
	{"sparse file of 64 GiB with one page: 64 MiB", 65536 * MIB, 8, 64 * MIB},
	{"sparse file with 2 MiB of pages: 64 times those", 65536 * MIB, 2 * MIB / 512, 128 * MIB},
	{"blocks whose bytes overflow: the size", 4096, INT64_MAX, 4096},
};

static void check(void **state)
{
	const struct row *row = *state;
	const struct stat st = {.st_size = row->size, .st_blocks = row->blocks};
	assert_int_equal(sql_guard_stored_bytes(&st), row->expected);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "sql_guard");
}
