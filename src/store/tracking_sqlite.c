#include "store/sql.h"
#include "store/tracking.h"

#include <errno.h>
#include <string.h>

enum { SQL_CEILING = 65536 };

static int fail(const struct tracking_writer *writer, sqlite3 *db, struct wattle_error *reterr)
{
	return sql_fail(db, writer->output.path, reterr);
}

// Types as SQLAlchemy names them for str, int and float: gpu_tracker reads the columns by type.
static void create_tables(struct buf *sql, const struct tracking_field *fields)
{
	buf_str(sql, "CREATE TABLE static_data (");
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		const char *number = fields[i].is_integer ? "INTEGER" : "FLOAT";
		buf_printf(sql, "%s%s %s", i > 0 ? ", " : "", fields[i].name,
			fields[i].text != NULL ? "VARCHAR" : number);
	}
	buf_str(sql, "); CREATE TABLE data (");
	for (size_t i = 0; i < TRACKING_COLUMNS; i++)
		buf_printf(sql, "%s%s %s", i > 0 ? ", " : "", tracking_columns[i].name,
			tracking_columns[i].is_integer ? "INTEGER" : "FLOAT");
	buf_str(sql, ")");
}

static void values_of(struct buf *sql, const char *table, size_t n)
{
	buf_printf(sql, "INSERT INTO %s VALUES (?", table);
	for (size_t i = 1; i < n; i++)
		buf_str(sql, ", ?");
	buf_char(sql, ')');
}

static void bind_number(sqlite3_stmt *statement, int column, double value, bool is_integer)
{
	if (is_integer && !isnan(value))
		sqlite3_bind_int64(statement, column, (int64_t)value);
	else
		sql_bind_double(statement, column, value);
}

static int insert_static(sqlite3 *db, const struct tracking_field *fields)
{
	struct buf sql;
	buf_init(&sql, SQL_CEILING);
	values_of(&sql, "static_data", TRACKING_STATICS);
	sqlite3_stmt *insert = NULL;
	int r = sql.failed != 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(db, sql.data, -1, &insert, NULL);
	buf_finish(&sql);
	for (int i = 0; r == SQLITE_OK && i < TRACKING_STATICS; i++) {
		if (fields[i].text != NULL)
			sql_bind_text(insert, i + 1, fields[i].text);
		else
			bind_number(insert, i + 1, fields[i].number, fields[i].is_integer);
	}
	if (r == SQLITE_OK)
		r = sql_run(insert);
	sqlite3_finalize(insert);
	return r;
}

static int make(struct tracking_writer *writer, const struct tracking_metadata *facts, struct wattle_error *reterr)
{
	sqlite3 *db;
	int r = sql_open_builder(writer->output.temporary_path, &db, reterr);
	if (r < 0)
		return r;
	struct tracking_field fields[TRACKING_STATICS];
	tracking_statics(facts, fields);
	struct buf sql;
	buf_init(&sql, SQL_CEILING);
	create_tables(&sql, fields);
	int result = sql.failed != 0 ? SQLITE_NOMEM : sql_exec(db, "BEGIN");
	if (result == SQLITE_OK)
		result = sql_exec(db, sql.data);
	buf_finish(&sql);
	if (result == SQLITE_OK)
		result = insert_static(db, fields);
	if (result == SQLITE_OK)
		result = sql_exec(db, "COMMIT");
	if (result != SQLITE_OK)
		r = fail(writer, db, reterr);
	sqlite3_close(db);
	return r;
}

static bool has_columns(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	bool same = sqlite3_prepare_v2(db, "SELECT * FROM data LIMIT 0", -1, &s, NULL) == SQLITE_OK &&
		sqlite3_column_count(s) == TRACKING_COLUMNS;
	for (int i = 0; same && i < TRACKING_COLUMNS; i++)
		same = strcmp(sqlite3_column_name(s, i), tracking_columns[i].name) == 0;
	sqlite3_finalize(s);
	return same;
}

static bool has_units(sqlite3 *db, const struct tracking_metadata *facts)
{
	sqlite3_stmt *s = NULL;
	bool same = false;
	if (sqlite3_prepare_v2(db,
		    "SELECT count(*) FROM static_data WHERE ram_unit = ? AND gpu_ram_unit = ? AND time_unit = ?", -1,
		    &s, NULL) == SQLITE_OK) {
		sql_bind_text(s, 1, facts->ram_unit);
		sql_bind_text(s, 2, facts->gpu_ram_unit);
		sql_bind_text(s, 3, facts->time_unit);
		same = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 1;
	}
	sqlite3_finalize(s);
	return same;
}

static int check(struct tracking_writer *writer, const struct tracking_metadata *facts, struct wattle_error *reterr)
{
	sqlite3 *db;
	int r = sql_open_reader(writer->output.path, &db, reterr);
	if (r < 0)
		return r;
	if (!has_columns(db))
		r = error_set(reterr, -EINVAL,
			"%s is not a tracking file with these columns: choose another file or give --overwrite",
			writer->output.path);
	else if (!has_units(db, facts))
		r = error_set(reterr, -EINVAL,
			"%s has units other than %s, %s and %s: use the same units to append to it",
			writer->output.path, facts->ram_unit, facts->gpu_ram_unit, facts->time_unit);
	sqlite3_close(db);
	return r;
}

static int resume(struct tracking_writer *writer, struct wattle_error *reterr)
{
	int r = sql_open_writer(writer->output.path, &writer->db, reterr);
	if (r < 0)
		return r;
	struct buf sql;
	buf_init(&sql, SQL_CEILING);
	values_of(&sql, "data", TRACKING_COLUMNS);
	int result = sql.failed != 0
		? SQLITE_NOMEM
		: sqlite3_prepare_v3(writer->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT, &writer->insert, NULL);
	buf_finish(&sql);
	if (result != SQLITE_OK)
		return fail(writer, writer->db, reterr);
	sql_guard_lift_limit(writer->db);
	return 0;
}

static int begin(struct tracking_writer *writer, struct wattle_error *reterr)
{
	return sql_exec(writer->db, "BEGIN IMMEDIATE") == SQLITE_OK ? 0 : fail(writer, writer->db, reterr);
}

static int add(struct tracking_writer *writer, const struct tracking_row *row, struct wattle_error *reterr)
{
	for (int i = 0; i < TRACKING_COLUMNS; i++)
		bind_number(writer->insert, i + 1, row->values[i], tracking_columns[i].is_integer);
	return sql_run(writer->insert) == SQLITE_OK ? 0 : fail(writer, writer->db, reterr);
}

static int commit(struct tracking_writer *writer, struct wattle_error *reterr)
{
	return sql_exec(writer->db, "COMMIT") == SQLITE_OK ? 0 : fail(writer, writer->db, reterr);
}

static void rollback(struct tracking_writer *writer)
{
	sql_rollback(writer->db);
}

static void end(struct tracking_writer *writer)
{
	sqlite3_finalize(writer->insert);
	writer->insert = NULL;
	if (output_file_is_ours(&writer->output))
		sql_merge_log(writer->db);
}

static void close_database(struct tracking_writer *writer)
{
	sqlite3_finalize(writer->insert);
	sqlite3_close(writer->db);
	writer->insert = NULL;
	writer->db = NULL;
}

const struct tracking_layout tracking_sqlite = {
	.ending = ".sqlite",
	.make = make,
	.check = check,
	.resume = resume,
	.begin = begin,
	.add = add,
	.commit = commit,
	.rollback = rollback,
	.end = end,
	.close = close_database,
};
