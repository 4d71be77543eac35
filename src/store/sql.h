/* The few SQLite calls that every file of this room makes, with wattle's rules: an unknown value is NULL, a failure
 * is a negative errno and a sentence that names the file. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/util.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Before all else, in a program of our own only: SQLite's settings hold for the whole process, and Python's has other users. */
void sql_set_up_program(void);

// Of the last failed call on db: -ENOSPC, -EROFS, -EBUSY, -EIO … and "FILE: what went wrong" in *reterr.
int sql_fail(sqlite3 *db, const char *path, struct wattle_error *reterr);

// Runs statements that give no rows anybody wants. SQLite's result code.
int sql_exec(sqlite3 *db, const char *sql);
// First column of the first row; fallback where there is none, or on failure.
int64_t sql_read_i64(sqlite3 *db, const char *sql, int64_t fallback);
void sql_read_run_id(sqlite3 *db, char *out, size_t size); // "": it has none
// Steps a statement that gives no rows, and makes it ready to be bound again. SQLITE_OK or the failure.
int sql_run(sqlite3_stmt *statement);
// Prepares, binds and runs a statement that gives no rows. SQLite's result code.
int sql_once(sqlite3 *db, const char *sql, void (*bind)(sqlite3_stmt *, const void *), const void *data);
// Leaves a transaction that a failure may or may not have ended already.
void sql_rollback(sqlite3 *db);

// What the last failed call says, for a sentence.
const char *sql_reason(sqlite3 *db);

/* Files that exist may come from anybody: sql_guard.h and companions.h say what holds for those, and what is refused (-EINVAL, -EPERM).
 * Opens an existing database for the one who writes to it: WAL where the file system can do that, else a rollback
 * journal; small cache; safe against a kill at any moment. */
int sql_open_writer(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
/* Opens the file of a database that is being made: no journal, no flush, because nobody knows its name yet. */
int sql_open_maker(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
/* Opens for reading only: also while somebody writes, after a writer was killed, and from read-only media. */
int sql_open_reader(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
// Brings everything into the one file and drops the log beside it, unless a reader still needs that.
void sql_fold(sqlite3 *db);

/* Times, counters and sizes are far below 2^62 (Unix time in ns is below 2^61 until 2043). What a damaged or made file says beyond
 * that is no figure, and the difference of two of them no number. */
static inline int64_t sql_in_range(int64_t value)
{
	return value > -(INT64_C(1) << 62) && value < INT64_C(1) << 62 ? value : VALUE_MISSING;
}

// Columns are numbered from 1 when bound and from 0 when read, as in SQLite.
void sql_bind_i64(sqlite3_stmt *statement, int column, int64_t value);     // VALUE_MISSING: NULL
void sql_bind_double(sqlite3_stmt *statement, int column, double value);   // NaN: NULL
void sql_bind_text(sqlite3_stmt *statement, int column, const char *text); // borrowed until run; NULL: NULL
void sql_bind_name(sqlite3_stmt *statement, int column, const char *text); // as above, "" is NULL too
int64_t sql_i64(sqlite3_stmt *statement, int column);   // VALUE_MISSING unless it holds an integer within 2^62
double sql_double(sqlite3_stmt *statement, int column); // NaN unless it holds a number
// Copied into the arena; NULL for NULL, and when there is no memory.
const char *sql_text(sqlite3_stmt *statement, int column, struct arena *arena);
// Copied into a fixed array, cut where it is too long; "" for NULL.
void sql_copy_text(sqlite3_stmt *statement, int column, char *out, size_t size);
