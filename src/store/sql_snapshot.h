/* A copy in memory of the run file of another user that a recorder still writes.
 *
 * SQLite maps the index of a log (-shm) that readers and the writer share. The owner of that file can truncate it while it is mapped, and
 * the reader then dies of SIGBUS. So the file is read without locks and with an index in private memory, all pages at once. The copy is
 * valid if neither the database nor the first frame of its log changed meanwhile: the recorder appends to the log otherwise, and a page is
 * overwritten only by a checkpoint or a restart of the log. */
#pragma once

#include "base/error.h"

#include <sqlite3.h>

enum { SQL_SNAPSHOT_BYTES_MOST = 256 << 20 };

// Opens the file without locks and without a shared index.
typedef int sql_snapshot_open_source(const char *path, sqlite3 **ret_db, struct wattle_error *reterr);

/* -EFBIG: larger than SQL_SNAPSHOT_BYTES_MOST; -EBUSY: it changed at each try; else as sql_fail; with a sentence. Only for reading. */
int sql_snapshot_open(const char *path, sql_snapshot_open_source *open_source, sqlite3 **ret_db,
	struct wattle_error *reterr);
