#include "store/sql.h"

#include "base/clock.h"
#include "base/util.h"
#include "store/output_file.h"
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Steps between two clock reads. The longest step copies one value.
enum { STEPS_PER_CHECK = 400 };
static const int64_t CPU_CHECK_NS = 10 * NS_PER_MS; // reading CPU time is a system call
enum { LENGTH_MIN = 16 << 20, LENGTH_MAX = 1 << 30 };

struct guard {                 // owned by the connection
	int64_t opened_cpu_ns; // CPU time of the thread
	int64_t checked_ns;    // time of the next CPU time check, CLOCK_MONOTONIC
	int64_t bytes;
	char path[OUTPUT_FILE_PATH_SIZE];
};

int64_t sql_guard_stored_bytes(const struct stat *st)
{
	enum { BLOCK = 512, COMPRESSION = 64, LEAST = 16 << 20 }; // LEAST: some file systems count no blocks
	int64_t blocks = st->st_blocks, size = st->st_size;
	int64_t most = blocks > INT64_MAX / (BLOCK * COMPRESSION) ? INT64_MAX : blocks * BLOCK * COMPRESSION;
	most = most > LEAST ? most : LEAST;
	return size < most ? size : most;
}

int64_t sql_guard_file_bytes(const char *path)
{
	char log[OUTPUT_FILE_PATH_SIZE + 8];
	struct stat st;
	snprintf(log, sizeof(log), "%s-wal", path);
	// Uses stat: opening and closing the database would drop SQLite's locks.
	int64_t bytes = stat(path, &st) == 0 ? sql_guard_stored_bytes(&st) : 0;
	return bytes + (stat(log, &st) == 0 ? sql_guard_stored_bytes(&st) : 0);
}

static bool has_time(const struct guard *guard, int64_t used_ns)
{
	return (double)used_ns * 1e-9 < SQL_GUARD_BASE_S + (double)guard->bytes / SQL_GUARD_BYTES_PER_S;
}

// Not 0: the query ends with SQLITE_INTERRUPT.
static int on_progress(void *data)
{
	struct guard *guard = data;
	int64_t now_ns = clock_now_ns();
	if (now_ns < guard->checked_ns)
		return 0;
	guard->checked_ns = now_ns + CPU_CHECK_NS;
	int64_t used_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - guard->opened_cpu_ns;
	if (has_time(guard, used_ns))
		return 0;
	guard->bytes = sql_guard_file_bytes(guard->path); // the file may have grown
	return !has_time(guard, used_ns);
}

static void nothing(sqlite3_context *context, int n, sqlite3_value **values)
{
	(void)n;
	(void)values;
	sqlite3_result_null(context);
}

/* A connection frees the data of its functions, so the guard lives as long as the connection, wherever that is closed. The file
 * cannot call the function itself. */
static struct guard *new_guard(sqlite3 *db, const char *path)
{
	struct guard *guard = sqlite3_malloc(sizeof(*guard));
	if (guard == NULL)
		return NULL;
	*guard = (struct guard){
		.opened_cpu_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID),
		.bytes = sql_guard_file_bytes(path),
	};
	guard->checked_ns = clock_now_ns() + NS_PER_S;
	text_copy(guard->path, sizeof(guard->path), path);
	// On failure SQLite also calls the destructor.
	return sqlite3_create_function_v2(db, "wattle_guard", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, guard, nothing, NULL,
		       NULL, sqlite3_free) == SQLITE_OK
		? guard
		: NULL;
}

int sql_guard_set(sqlite3 *db, const char *path, struct wattle_error *reterr)
{
	static const struct {
		int setting, value;
	} settings[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		{SQLITE_DBCONFIG_ENABLE_FKEY, 0},
		{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		sqlite3_db_config(db, settings[i].setting, settings[i].value, NULL);
	sqlite3_drop_modules(db, NULL);
	struct guard *guard = new_guard(db, path);
	if (guard == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	int64_t longest = guard->bytes < LENGTH_MIN ? LENGTH_MIN
		: guard->bytes < LENGTH_MAX         ? guard->bytes
						    : LENGTH_MAX;
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, (int)longest);
	sqlite3_progress_handler(db, STEPS_PER_CHECK, on_progress, guard);
	return 0;
}

void sql_guard_lift_limit(sqlite3 *db)
{
	sqlite3_progress_handler(db, 0, NULL, NULL);
}

/* ---- tables ---- */

static bool is_of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c < 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t size = strlen(word);
	for (const char *at = text; (at = strcasestr(at, word)) != NULL; at++)
		if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[size]))
			return true;
	return false;
}

/* Whether the schema computes nothing: all SQL texts are of tables, and none contains the keyword of a computed column or
 * default value. Every recorder's file passes this check; checking each table through SQLite instead costs 2.7 million
 * instructions. Indexes without SQL text belong to keys, which have plain columns. */
static bool is_plain(sqlite3 *db)
{
	static const char create[] = "CREATE TABLE ";
	sqlite3_stmt *s = NULL;
	bool plain = true;
	int r = sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", -1, &s, NULL);
	while (r == SQLITE_OK && plain && (r = sqlite3_step(s)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(s, 0);
		plain = text != NULL && strncmp(text, create, sizeof(create) - 1) == 0 && !has_word(text, "as") &&
			!has_word(text, "default");
		r = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return plain && r == SQLITE_DONE;
}

static bool is_known(const char *name)
{
	static const char *const others[] = {"data", "static_data", "profile", "profile_module", "profile_stack",
		"profile_sample", "profile_symbol"};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (sqlite3_stricmp(name, others[i]) == 0)
			return true;
	size_t n;
	const struct schema_column *columns = schema_columns(&n);
	for (size_t i = 0; i < n; i++)
		if (sqlite3_stricmp(name, columns[i].table) == 0)
			return true;
	return false;
}

// Whether the query `sql` returns a row for the table.
static int has_row(sqlite3 *db, const char *sql, const char *table, bool *ret_has)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (r == SQLITE_OK) {
		sql_bind_text(s, 1, table);
		r = sqlite3_step(s);
	}
	*ret_has = r == SQLITE_ROW;
	sqlite3_finalize(s);
	return r == SQLITE_ROW || r == SQLITE_DONE ? SQLITE_OK : r;
}

// The first reason to reject the table; NULL: none. SQLite result code.
static int find_fault(sqlite3 *db, const char *table, bool is_writer, const char **ret_fault)
{
	static const struct {
		bool of_writer;
		const char *sql, *fault;
	} faults[] = {
		{false, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0", "has computed columns"},
		{true, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE dflt_value LIKE '%(%'",
			"has computed default values"},
		{true,
			"SELECT 1 FROM pragma_index_list(?1) AS l WHERE l.partial OR EXISTS "
			"(SELECT 1 FROM pragma_index_xinfo(l.name) WHERE cid = -2)",
			"has an index of computed values"},
	};
	int r = SQLITE_OK;
	*ret_fault = NULL;
	for (size_t i = 0; r == SQLITE_OK && *ret_fault == NULL && i < ARRAY_SIZE(faults); i++) {
		bool has = false;
		if (is_writer || !faults[i].of_writer)
			r = has_row(db, faults[i].sql, table, &has);
		if (has)
			*ret_fault = faults[i].fault;
	}
	return r;
}

int sql_guard_check(sqlite3 *db, const char *path, bool is_writer, struct wattle_error *reterr)
{
	static const char select[] =
		"SELECT name, type = 'table' AND rootpage > 0 FROM sqlite_schema WHERE type IN ('table', 'view')";
	sqlite3_stmt *s = NULL;
	int r = is_writer ? sql_exec(db, "PRAGMA ignore_check_constraints=ON") : SQLITE_OK;
	if (r == SQLITE_OK && is_plain(db))
		return 0;
	if (r == SQLITE_OK)
		r = sqlite3_prepare_v2(db, select, -1, &s, NULL);
	const char *fault = NULL;
	char name[64] = "";
	while (r == SQLITE_OK && fault == NULL && (r = sqlite3_step(s)) == SQLITE_ROW) {
		sql_copy_text(s, 0, name, sizeof(name));
		bool is_table = sqlite3_column_int(s, 1) != 0;
		r = SQLITE_OK;
		if (is_known(name) && !is_table)
			fault = "is a view or a virtual table";
		else if (is_known(name))
			r = find_fault(db, name, is_writer, &fault);
	}
	int code = 0;
	if (fault != NULL)
		code = error_set(reterr, -EINVAL,
			"%s: table %s %s: wattle does not write such files and refuses to read it", path, name, fault);
	else if (r != SQLITE_DONE)
		code = sql_fail(db, path, reterr);
	sqlite3_finalize(s);
	return code;
}
