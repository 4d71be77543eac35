/* The files that SQLite keeps beside a database: its log (-wal), the index of that (-shm) and the rollback journal (-journal). Beside them
 * lies the spool (-spans), whose entries become rows.
 *
 * SQLite takes what it finds under these names. In a folder where others may make files one of them may be planted: the index is
 * mapped, so who owns it can end this process by cutting it, and a log or a journal that another has written becomes part of the
 * database. So all must be regular files of one who may write to the database itself. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

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
