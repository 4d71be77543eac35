/* A store as it stands in a database: whether it is there, and of which version; made, brought up to date, opened to others. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct pg;

enum { PG_NAME_SIZE = 64 }; // of an identifier

struct pg_store {
	char schema[PG_NAME_SIZE]; // where it is; where none is, that in which it would be made, "" none
	char role[PG_NAME_SIZE];   // who we are
	int64_t version;           // VALUE_MISSING: no store is there, or not for us
	int64_t compatible;
	bool is_there;
	bool is_ours;  // we may change its tables
	bool may_make; // where none is: we may make one
	bool may_ask;  // we may call wattle_version: we are a writer, a reader or the owner
	bool may_write, may_read;
};
int pg_store_look(struct pg *pg, struct pg_store *ret_store, struct wattle_error *reterr);

/* First contact of those who write: makes or migrates it where that is ours to do, else says who could. *ret_changed (may be NULL):
 * something was done. -EACCES, -ENOENT, -ENOTSUP. */
int pg_store_ensure(struct pg *pg, bool *ret_changed, struct wattle_error *reterr);
// First contact of those who read: it is there, we may, and it is not of a newer wattle that ours can't read.
int pg_store_check(struct pg *pg, struct wattle_error *reterr);

// Rights of a role, which is made (NOLOGIN) where it is missing: a writer adds runs and reads nothing, a reader reads.
enum pg_right { PG_WRITER, PG_READER };
int pg_store_grant(struct pg *pg, enum pg_right right, const char *role, bool *ret_made_role,
	struct wattle_error *reterr);
