/* The tables of a store in PostgreSQL (docs/postgresql.md): those of the run file, made from the same two lists (metrics.def and
 * schema_columns), and a few of the store's own. Texts only; nothing here speaks to a server. */
#pragma once

#include "base/buf.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>

/* Raised with every change of tables or functions; `wattle store init` and the first contact of a role that may create bring an
 * older store up to it. A store says itself (wattle_schema.compatible) which older programs may go on using it. */
enum { PG_SCHEMA_VERSION = 1, PG_SCHEMA_COMPATIBLE = 1 };

/* Rows by time: range partitions, one a day of UTC, made on demand by wattle_days. Only these are filled by COPY; all others by the
 * functions. */
struct pg_big_table {
	const char *name;
	const char *t_ns;    // the column that `time` is the wall clock of
	bool has_level;      // the day is divided by column `level` once more
	const char *indexes; // columns of the btree of each leaf, but those of level 2 (docs/scale.md)
};
const struct pg_big_table *pg_big_tables(size_t *ret_count);
const struct pg_big_table *pg_big_table(const char *name); // NULL: it is none

enum { PG_LEVELS = 3 }; // 0: first sample of a minute, 1: of a second, 2: all others

// A column as PostgreSQL has it.
struct pg_column {
	const char *name, *type; // "bigint", "integer", "smallint", "double precision", "text", "uuid", "timestamptz" …
	bool not_null;
	const char *unit, *meaning; // "" none
};
enum { PG_COLUMNS_MAX = 80 };
// The columns of a table in the order in which they are made. Returns how many, 0: no such table.
size_t pg_columns(const char *table, struct pg_column ret_columns[PG_COLUMNS_MAX]);

struct pg_table {
	const char *name;
	const char *key; // what with run_id is the primary key; NULL: none
	bool has_run;    // its first column is run_id
	const char *options;
};
const struct pg_table *pg_table(size_t i); // in the order in which they are made; NULL behind the last

/* Makes what is missing, in the current schema, and leaves alone what is there: tables, columns, functions, the rows of `metric`, the
 * version. To be run in one transaction. Idempotent. */
void pg_tables_sql(struct buf *out);
// SELECT count(*) of the columns that the server does not have.
void pg_missing_columns_sql(struct buf *out);
extern const char pg_functions_sql[]; // functions.sql
