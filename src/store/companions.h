/* The files that SQLite keeps beside a database: its log (-wal), the index of that (-shm) and the rollback journal (-journal).
 *
 * SQLite takes what it finds under these names. In a folder where others may make files one of them may be planted: the index is
 * mapped, so who owns it can end this process by cutting it, and a log or a journal that another has written becomes part of the
 * database. So all three must be regular files of one who may write to the database itself. */
#pragma once

#include "base/error.h"

// Before a database is opened, and again when it is open. -EPERM with a sentence that names the file and says what to do.
int companions_check(const char *path, struct wattle_error *reterr);
/* A new database gets the name `path`: what lies beside it, the spool of a run file included, is of another one, and goes. -EPERM
 * with a sentence where it can't be removed. */
int companions_clear(const char *path, struct wattle_error *reterr);
