#include "store/sql.h"

#include "rows.h"

#define MIB ((int64_t)1 << 20)

static const struct row {
	const char *teaches;
	int64_t size, blocks, expected;
} rows[] = {
	{"empty file: nothing", 0, 0, 0},
	{"small file: size of the file", 4096, 8, 4096},
	{"large file: size of the file", 1024 * MIB, 1024 * MIB / 512, 1024 * MIB},
	{"compressed to a tenth: size of the file", 1024 * MIB, 1024 * MIB / 5120, 1024 * MIB},
	{"file system that reports no blocks: at most 16 MiB", 1024 * MIB, 0, 16 * MIB},
	{"sparse file of 64 GiB with one page: 16 MiB", 65536 * MIB, 8, 16 * MIB},
	{"sparse file with 2 MiB of pages: 64 times those", 65536 * MIB, 2 * MIB / 512, 128 * MIB},
	{"number of blocks overflows in bytes: size of the file", 4096, INT64_MAX, 4096},
};

static void check(void **state)
{
	const struct row *row = *state;
	const struct stat st = {.st_size = row->size, .st_blocks = row->blocks};
	assert_int_equal(sql_guard_stored_bytes(&st), row->expected);
}

// Settings of SQLite on a database that another process may have written.
static const struct setting_row {
	const char *teaches;
	int setting, expected;
} settings[] = {
	{"views: off", SQLITE_DBCONFIG_ENABLE_VIEW, 0},
	{"triggers: off", SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
	{"foreign keys: off", SQLITE_DBCONFIG_ENABLE_FKEY, 0},
	{"extensions: off", SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	{"schema functions with side effects: off", SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{"defensive mode: on", SQLITE_DBCONFIG_DEFENSIVE, 1},
};

static sqlite3 *guarded(void)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	// The opposite of the required settings, whatever this SQLite was built with.
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		sqlite3_db_config(db, settings[i].setting, !settings[i].expected, NULL);
	assert_int_equal(sql_guard_set(db, "/nowhere/run.sqlite", NULL), 0);
	return db;
}

static void check_setting(void **state)
{
	const struct setting_row *row = *state;
	sqlite3 *db = guarded();
	int value = -1;
	assert_int_equal(sqlite3_db_config(db, row->setting, -1, &value), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(value, row->expected);
}

// Statements on a database whose file stores nothing.
static const struct statement_row {
	const char *teaches, *sql;
	int expected;
} statements[] = {
	{"virtual table: no such module", "CREATE VIRTUAL TABLE t USING fts4(x)", SQLITE_ERROR},
	{"value of 16 MiB: accepted", "SELECT length(zeroblob(16 << 20))", SQLITE_OK},
	{"value of 17 MiB: larger than the file could hold", "SELECT length(zeroblob(17 << 20))", SQLITE_TOOBIG},
	{"endless query: interrupted",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
		SQLITE_INTERRUPT},
};

static void check_statement(void **state)
{
	const struct statement_row *row = *state;
	sqlite3 *db = guarded();
	int r = sqlite3_exec(db, row->sql, NULL, NULL, NULL);
	sqlite3_close(db);
	assert_int_equal(r, row->expected);
}

// Integers of a file, as they are read.
static const struct integer_row {
	const char *teaches, *sql;
	int64_t expected;
} integers[] = {
	{"largest integer within 2^62: read", "SELECT 4611686018427387903", INT64_C(4611686018427387903)},
	{"2^62: unknown", "SELECT 4611686018427387904", VALUE_MISSING},
	{"largest integer: unknown", "SELECT 9223372036854775807", VALUE_MISSING},
	{"smallest integer within -2^62: read", "SELECT -4611686018427387903", INT64_C(-4611686018427387903)},
	{"smallest integer: unknown", "SELECT -9223372036854775807 - 1", VALUE_MISSING},
	{"text: unknown", "SELECT '7'", VALUE_MISSING},
};

static void check_integer(void **state)
{
	const struct integer_row *row = *state;
	sqlite3 *db = guarded();
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_prepare_v2(db, row->sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t value = sql_i64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	assert_true(value == row->expected);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, settings, check_setting);
	ROWS_ADD(&tests, statements, check_statement);
	ROWS_ADD(&tests, integers, check_integer);
	return rows_run(&tests, "sql_guard");
}
