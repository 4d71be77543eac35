/* Restrictions for databases that another process may have written.
 *
 * No code of the file runs: views and triggers are off, its expressions may call nothing that has effects, there are no virtual
 * tables, and the tables that wattle knows must be tables, without columns that are computed. No value is longer than the file could hold,
 * and reading may take the time that a file of this size can need and no more: a tree of pages that refers to itself has no end.
 *
 * The time is CPU time of this thread since the database was opened: SQL_GUARD_BASE_S, and a second for each SQL_GUARD_BYTES_PER_S of
 * what the file and its log store by then; a load takes a tenth of that on a small machine, and in a build with sanitizers. It is looked at
 * between the steps of a query, of which a bare count(*) is one, however long it takes: so count(1) is asked for. */
#pragma once

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

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
