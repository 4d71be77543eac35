/* How rows of one table of the run file become rows of the server's table: the columns that both have, by name, and those that only
 * the server's has (run_id, time, level). A server of another version may have more or fewer metrics than we. */
#pragma once

#include "base/buf.h"
#include "store/postgres/copy.h"
#include "store/postgres/pq.h"
#include "store/sql.h"

enum layout_table {
	LAYOUT_SAMPLE,
	LAYOUT_DEVICE_SAMPLE,
	LAYOUT_PROCESS_SAMPLE,
	LAYOUT_SPAN,
	LAYOUT_USER_METRIC,
	LAYOUT_EVENT,
	LAYOUT_TABLES
};

// What the rows that have been sent are told by.
enum layout_key {
	LAYOUT_BY_TIME,  // t_ns of the last one
	LAYOUT_BY_ROWID, // rowid of the last one
	LAYOUT_BY_ID,    // the set of ids
};

struct layout_names {
	const char *name; // of the table, in both
	enum layout_key key;
	const char *key_column, *time_column;
	const char *device; // whose samples have levels: a column, or a constant
};
extern const struct layout_names layout_names[LAYOUT_TABLES];

enum { LAYOUT_FIELDS_MOST = 128, LAYOUT_NAME_SIZE = 64 };

struct layout_column { // of the server
	char name[LAYOUT_NAME_SIZE];
	enum pg_type type;
};

struct layout_server { // the columns of one of its tables, of types that we know
	struct layout_column columns[LAYOUT_FIELDS_MOST];
	size_t n;
};

enum layout_source { LAYOUT_RUN_ID, LAYOUT_TIME, LAYOUT_LEVEL, LAYOUT_VALUE };

struct layout_field {
	enum layout_source source;
	enum pg_type type;
	int column; // of the SELECT
};

// The first columns of every SELECT.
enum { LAYOUT_COLUMN_KEY, LAYOUT_COLUMN_TIME, LAYOUT_COLUMN_DEVICE, LAYOUT_COLUMN_RAW, LAYOUT_FIRST_VALUE };

struct layout {
	struct layout_field fields[LAYOUT_FIELDS_MOST];
	size_t n;
};

// -ENOENT: the server has no such table; -EACCES and others as pq.h.
int layout_ask(struct pg *pg, enum layout_table table, struct layout_server *ret_server, struct wattle_error *reterr);
/* Which fields there are, the SELECT over the run file (?1, ?2: keys from and to, both included), and the COPY. A run file of an older
 * version may lack the whole table: then ret_layout->n is 0. */
int layout_make(sqlite3 *db, const struct layout_server *server, enum layout_table table, struct layout *ret_layout,
	struct buf *select, struct buf *copy);
