/* What a store holds, for those who look after it. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "store/postgres/schema.h"

#include <stddef.h>
#include <stdint.h>

struct pg;

struct pg_table_status { // a table that grows by the day
	const char *name;
	int64_t rows;  // the server's own estimate; VALUE_MISSING unknown
	int64_t bytes; // with its indexes
};

struct pg_role_status {
	const char *name;
	bool writes, reads;
};

struct pg_status {
	struct pg_store store;
	const char *owner, *server; // version of PostgreSQL
	int64_t runs, incomplete, jobs, hosts, users;
	int64_t first_wall_ns, last_wall_ns; // starts of the first and of the last run; VALUE_MISSING none
	int64_t last_batch_wall_ns;          // when rows came last
	int64_t days;                        // that have partitions
	const char *first_day, *last_day;    // of those, "2026-01-31"; NULL none
	int64_t bytes;                       // of all tables and indexes
	struct pg_table_status *tables;
	size_t n_tables;
	struct pg_role_status *roles; // besides the owner
	size_t n_roles;
};
// Texts lie in the arena. -EACCES, -ENOENT … with a sentence.
int pg_status_read(struct pg *pg, struct arena *arena, struct pg_status *ret_status, struct wattle_error *reterr);
