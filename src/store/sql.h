/* SQLite calls shared by the files of src/store, with wattle's rules: an unknown value is NULL, a failure is a negative errno
 * and a message that names the file. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/util.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Call before any other SQLite call, and in wattle's own program only: the settings hold for the whole process, and a Python
 * process has other users of SQLite. */
void sql_set_up_program(void);

// Error of the last failed call on db: -ENOSPC, -EROFS, -EBUSY, -EIO … and "FILE: reason" in *reterr.
int sql_fail(sqlite3 *db, const char *path, struct wattle_error *reterr);

// Runs statements and discards their rows. SQLite result code.
int sql_exec(sqlite3 *db, const char *sql);
// First column of the first row; fallback if there is no row, or on failure.
int64_t sql_read_i64(sqlite3 *db, const char *sql, int64_t fallback);
void sql_read_run_id(sqlite3 *db, char *out, size_t size); // "": the file has no id
// Steps a statement without result rows and resets it for further binding. SQLITE_OK or the failure.
int sql_run(sqlite3_stmt *statement);
// Prepares, binds and runs a statement without result rows. SQLite result code.
int sql_once(sqlite3 *db, const char *sql, void (*bind)(sqlite3_stmt *, const void *), const void *data);
// Rolls back a transaction that a failure may already have ended.
void sql_rollback(sqlite3 *db);

// Reason of the last failed call, for a message.
const char *sql_reason(sqlite3 *db);

/* Existing files are untrusted: sql_guard.c and companions.c define which are refused (-EINVAL, -EPERM) and what is guaranteed
 * for the rest. Opens an existing database for the single writer: WAL where the file system supports it, otherwise a rollback
 * journal; small cache; safe against a kill at any moment. */
int sql_open_writer(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
/* Opens a database file under construction: no journal and no flush, because its final name does not exist yet. */
int sql_open_builder(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
/* Opens for reading only: also during writing, after a writer was killed, and from read-only media. */
int sql_open_reader(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);
// Moves all content from the log to the database file and deletes the log, unless a reader still needs it.
void sql_merge_log(sqlite3 *db);

/* Times, counters and sizes are far below 2^62 (Unix time in ns is below 2^61 until 2043). A larger value in a damaged or
 * forged file is missing, because differences of two such values would overflow. */
static inline int64_t sql_in_range(int64_t value)
{
	return value > -(INT64_C(1) << 62) && value < INT64_C(1) << 62 ? value : VALUE_MISSING;
}

// Columns are numbered from 1 when bound and from 0 when read, as in SQLite.
void sql_bind_i64(sqlite3_stmt *statement, int column, int64_t value);     // VALUE_MISSING: NULL
void sql_bind_double(sqlite3_stmt *statement, int column, double value);   // NaN: NULL
void sql_bind_text(sqlite3_stmt *statement, int column, const char *text); // borrowed until run; NULL: NULL
void sql_bind_name(sqlite3_stmt *statement, int column, const char *text); // as sql_bind_text; "" also becomes NULL
int64_t sql_i64(sqlite3_stmt *statement, int column);   // VALUE_MISSING unless it holds an integer within 2^62
double sql_double(sqlite3_stmt *statement, int column); // NaN unless it holds a number
// Copied into the arena; NULL for NULL and if memory runs out.
const char *sql_text(sqlite3_stmt *statement, int column, struct arena *arena);
// Copied into a fixed array, truncated to its size; "" for NULL.
void sql_copy_text(sqlite3_stmt *statement, int column, char *out, size_t size);

/* Restrictions on databases that another process may have written.
 *
 * No code of the file runs: views and triggers are disabled, expressions may not call functions with side effects, virtual
 * tables are rejected, and the tables that wattle uses must be real tables without computed columns. No value is longer than
 * the file could hold. The reading time is limited to what a file of this size can need, because a tree of pages may contain a
 * cycle.
 *
 * The limit applies to CPU time of this thread since the database was opened: SQL_GUARD_BASE_S, plus one second per
 * SQL_GUARD_BYTES_PER_S stored in the file and its log. A load takes a tenth of that on a small machine in a build with
 * sanitizers. The limit is checked between the steps of a query. A bare count(*) is one step however long it takes, so use
 * count(1). */

enum { SQL_GUARD_BASE_S = 2, SQL_GUARD_BYTES_PER_S = 2 << 20 };

// Call before the first query. -ENOMEM.
int sql_guard_set(sqlite3 *db, const char *path, struct wattle_error *reterr);
/* Checks that the tables wattle uses are real tables. is_writer: also that inserting into them computes nothing. -EINVAL with a
 * message, or the error of sql_fail. */
int sql_guard_check(sqlite3 *db, const char *path, bool is_writer, struct wattle_error *reterr);
// Removes the time limit for the recorder, which writes into its own file.
void sql_guard_lift_limit(sqlite3 *db);
/* Bytes that a file stores, for limits on time and memory. A sparse file can have any size at no cost, so the allocated blocks
 * limit the size. They count 64 times, because file systems compress, and as at least 64 MiB, because some network file systems
 * report no blocks. */
int64_t sql_guard_stored_bytes(const struct stat *st);
// The stored bytes of a database and its log.
int64_t sql_guard_file_bytes(const char *path);

/* An in-memory copy of another user's run file while a recorder still writes it.
 *
 * SQLite maps the index of a log (-shm), which readers and the writer share. The owner of that file can truncate it while it is
 * mapped, which kills the reader with SIGBUS. So the file is read without locks and with an index in private memory, all pages
 * at once. The copy is valid if neither the database nor the first frame of its log changed during the copy: the recorder
 * otherwise only appends to the log, and only a checkpoint or a restart of the log overwrites a page. */

enum { SQL_SNAPSHOT_BYTES_MAX = 256 << 20 };

// Opens the file without locks and without a shared index.
typedef int sql_snapshot_open_source(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);

/* -EFBIG: larger than SQL_SNAPSHOT_BYTES_MAX; -EBUSY: the file changed during every attempt; otherwise as sql_fail; with a
 * message. Read-only. */
int sql_snapshot_open(const char *path, sql_snapshot_open_source *open_source, sqlite3 **ret_db,
	struct wattle_error *reterr);

/* The files that SQLite keeps beside a database: its log (-wal), the index of the log (-shm) and the rollback journal
 * (-journal). The spool (-spans), whose entries become rows, is treated the same.
 *
 * SQLite uses whatever it finds under these names. In a folder that others can write to, one of the files may be planted: the
 * index is mapped, so its owner can kill this process by truncating it, and a log or journal written by another user becomes
 * part of the database. So all must be regular files of a user who may write to the database itself. */

struct stat;

// Call before a database is opened and again afterwards. -EPERM with a message that names the file and the remedy.
int companions_check(const char *path, struct wattle_error *reterr);
/* Checks that the log and its index exist, for a database that this process has open in WAL mode. A planted file that was
 * opened and removed again would pass companions_check. -EPERM. */
int companions_check_log(const char *path, struct wattle_error *reterr);
/* Whether a user other than the caller and root can truncate or replace the index of the log: access to the mapped index then
 * kills this process (SIGBUS). */
bool companions_can_be_cut(const char *path);
// Users who may change the database anyway may own its companions.
bool companions_may_own(const struct stat *database, const struct stat *companion);
/* Prepares the name `path` for a new database: removes companions of an earlier database, including the spool of a run file.
 * -EPERM with a message if a file cannot be removed. */
int companions_clear(const char *path, struct wattle_error *reterr);
