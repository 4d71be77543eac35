#include "store/sql.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/output_file.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Memory statistics are not used, and counting takes a lock at every malloc.
void sql_set_up_program(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* SQLite keeps the system's errno for some failures only. It does not for a COMMIT that could not write (quota, file size
 * limit); there errno still holds the reason, because sql_run cleared it before. */
static int code_of(sqlite3 *db)
{
	int system = sqlite3_system_errno(db) != 0 ? sqlite3_system_errno(db) : errno;
	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return -EINVAL;
	case SQLITE_INTERRUPT:
		return -EINVAL;
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		return system != 0 ? -system : -EIO;
	default:
		return -EIO;
	}
}

const char *sql_reason(sqlite3 *db)
{
	if ((sqlite3_errcode(db) & 0xff) == SQLITE_INTERRUPT) // by sql_guard.c; no other code interrupts
		return "reading it takes longer than is plausible for a file of this size";
	return sqlite3_errmsg(db);
}

int sql_fail(sqlite3 *db, const char *path, struct wattle_error *reterr)
{
	int code = code_of(db);
	const char *what = sql_reason(db);
	int result = sqlite3_errcode(db) & 0xff;
	// SQLite reports "disk I/O error" for each of these; errno is more specific.
	if (result == SQLITE_IOERR || result == SQLITE_CANTOPEN || result == SQLITE_FULL)
		what = strerror(-code);
	if (code == -EBUSY)
		return error_set(reterr, code,
			"%s: another program keeps it locked (`fuser %s` shows which); end that program, or "
			"use a copy of the file",
			path, path);
	return error_set(reterr, code, "%s: %s", path, what);
}

int sql_exec(sqlite3 *db, const char *sql)
{
	errno = 0;
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int64_t sql_read_i64(sqlite3 *db, const char *sql, int64_t fallback)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = fallback;
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW &&
		sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
		value = sql_i64(statement, 0);
	sqlite3_finalize(statement);
	return value_ok(value) ? value : fallback;
}

void sql_read_run_id(sqlite3 *db, char *out, size_t size)
{
	sqlite3_stmt *s = NULL;
	out[0] = '\0';
	if (sqlite3_prepare_v2(db, "SELECT value FROM run WHERE key = 'id'", -1, &s, NULL) == SQLITE_OK &&
		sqlite3_step(s) == SQLITE_ROW)
		sql_copy_text(s, 0, out, size);
	sqlite3_finalize(s);
}

int sql_run(sqlite3_stmt *statement)
{
	errno = 0;
	int r = sqlite3_step(statement);
	int reset = sqlite3_reset(statement);
	return r == SQLITE_DONE || r == SQLITE_ROW ? SQLITE_OK : reset;
}

int sql_once(sqlite3 *db, const char *sql, void (*bind)(sqlite3_stmt *, const void *), const void *data)
{
	sqlite3_stmt *statement = NULL;
	int r = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if (r == SQLITE_OK) {
		bind(statement, data);
		r = sql_run(statement);
	}
	sqlite3_finalize(statement);
	return r;
}

void sql_rollback(sqlite3 *db)
{
	if (!sqlite3_get_autocommit(db))
		sql_exec(db, "ROLLBACK");
}

void sql_bind_i64(sqlite3_stmt *statement, int column, int64_t value)
{
	if (value_ok(value))
		sqlite3_bind_int64(statement, column, value);
	else
		sqlite3_bind_null(statement, column);
}

void sql_bind_double(sqlite3_stmt *statement, int column, double value)
{
	if (isnan(value))
		sqlite3_bind_null(statement, column);
	else
		sqlite3_bind_double(statement, column, value);
}

void sql_bind_text(sqlite3_stmt *statement, int column, const char *text)
{
	sqlite3_bind_text(statement, column, text, -1, SQLITE_STATIC);
}

void sql_bind_name(sqlite3_stmt *statement, int column, const char *text)
{
	sql_bind_text(statement, column, text != NULL && text[0] != '\0' ? text : NULL);
}

int64_t sql_i64(sqlite3_stmt *statement, int column)
{
	// One look-up of the column instead of two. All connections are NOMUTEX, so the value needs no lock.
	sqlite3_value *value = sqlite3_column_value(statement, column);
	return sqlite3_value_type(value) == SQLITE_INTEGER ? sql_in_range(sqlite3_value_int64(value)) : VALUE_MISSING;
}

double sql_double(sqlite3_stmt *statement, int column)
{
	int type = sqlite3_column_type(statement, column);
	return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(statement, column) : (double)NAN;
}

const char *sql_text(sqlite3_stmt *statement, int column, struct arena *arena)
{
	return arena_text(arena, (const char *)sqlite3_column_text(statement, column));
}

void sql_copy_text(sqlite3_stmt *statement, int column, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(statement, column);
	text_copy(out, size, text != NULL ? (const char *)text : "");
}
