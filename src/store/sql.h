/* The few SQLite calls that every file of this room makes, with wattle's rules: an unknown value is NULL, a failure
 * is a negative errno and a sentence that names the file. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/util.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

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

/* Restrictions for databases that another process may have written.
 *
 * No code of the file runs: views and triggers are off, its expressions may call nothing that has effects, there are no virtual
 * tables, and the tables that wattle knows must be tables, without columns that are computed. No value is longer than the file could hold,
 * and reading may take the time that a file of this size can need and no more: a tree of pages that refers to itself has no end.
 *
 * The time is CPU time of this thread since the database was opened: SQL_GUARD_BASE_S, and a second for each SQL_GUARD_BYTES_PER_S of
 * what the file and its log store by then; a load takes a tenth of that on a small machine, and in a build with sanitizers. It is looked at
 * between the steps of a query, of which a bare count(*) is one, however long it takes: so count(1) is asked for. */

enum { SQL_GUARD_BASE_S = 2, SQL_GUARD_BYTES_PER_S = 2 << 20 };

// Before the first query. -ENOMEM.
int sql_guard_set(sqlite3 *db, const char *path, struct wattle_error *reterr);
/* Whether the tables that wattle knows are tables. is_writer: and inserting into them computes nothing. -EINVAL with a sentence, or what
 * sql_fail says. */
int sql_guard_check(sqlite3 *db, const char *path, bool is_writer, struct wattle_error *reterr);
// The recorder writes into its own file as long as it takes.
void sql_guard_lift_limit(sqlite3 *db);
/* Bytes that a file stores, for limits on time and memory. A sparse file has any size for nothing, so its blocks limit the size. They count
 * 64 times, because file systems compress, and as at least 64 MiB, because some network file systems report none. */
int64_t sql_guard_stored_bytes(const struct stat *st);
// The stored bytes of a database and its log.
int64_t sql_guard_file_bytes(const char *path);

/* A copy in memory of the run file of another user that a recorder still writes.
 *
 * SQLite maps the index of a log (-shm) that readers and the writer share. The owner of that file can truncate it while it is mapped, and
 * the reader then dies of SIGBUS. So the file is read without locks and with an index in private memory, all pages at once. The copy is
 * valid if neither the database nor the first frame of its log changed meanwhile: the recorder appends to the log otherwise, and a page is
 * overwritten only by a checkpoint or a restart of the log. */

enum { SQL_SNAPSHOT_BYTES_MOST = 256 << 20 };

// Opens the file without locks and without a shared index.
typedef int sql_snapshot_open_source(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);

/* -EFBIG: larger than SQL_SNAPSHOT_BYTES_MOST; -EBUSY: it changed at each try; else as sql_fail; with a sentence. Only for reading. */
int sql_snapshot_open(const char *path, sql_snapshot_open_source *open_source, sqlite3 **ret_db,
	struct wattle_error *reterr);

/* The files that SQLite keeps beside a database: its log (-wal), the index of that (-shm) and the rollback journal (-journal). Beside them
 * lies the spool (-spans), whose entries become rows.
 *
 * SQLite takes what it finds under these names. In a folder where others may make files one of them may be planted: the index is
 * mapped, so who owns it can end this process by cutting it, and a log or a journal that another has written becomes part of the
 * database. So all must be regular files of one who may write to the database itself. */

struct stat;

// Before a database is opened, and again when it is open. -EPERM with a sentence that names the file and says what to do.
int companions_check(const char *path, struct wattle_error *reterr);
/* The log and its index exist, of a database that this process has open in WAL mode. One that was planted, opened and removed again would pass
 * the check above. -EPERM. */
int companions_check_log(const char *path, struct wattle_error *reterr);
/* A user other than the caller and root can truncate the index of the log, or replace it: an access to the mapped index then ends this
 * process (SIGBUS). */
bool companions_can_be_cut(const char *path);
// Users who may change the database anyway may own its companions.
bool companions_may_own(const struct stat *database, const struct stat *companion);
/* A new database gets the name `path`: what lies beside it, the spool of a run file included, is of another one, and goes. -EPERM
 * with a sentence where it can't be removed. */
int companions_clear(const char *path, struct wattle_error *reterr);
