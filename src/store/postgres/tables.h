/* The tables and functions of a store in PostgreSQL: what they are, and their care. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A store as it stands in a database: whether it is there, and of which version; made, brought up to date, opened to others. */

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

/* The tables of a store in PostgreSQL (docs/postgresql.md): those of the run file, made from the same two lists (metrics.def and
 * schema_columns), and a few of the store's own. Texts only; nothing here speaks to a server. */

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

/* What a sender says to the server: the SQL functions that a writer may call, and the tables that it fills by COPY. Who makes them
 * (schema) and who calls them (send) meet here. A writer has EXECUTE on these, INSERT on the tables of COPY, and nothing else.
 *
 * One batch is one transaction:
 *	BEGIN; wattle_begin(…); COPY …; COPY …; wattle_put(…); wattle_mark(…); COMMIT
 * The days of its rows were asked for before it began (wattle_days), in a transaction of their own.
 *
 * wattle_days(first date, last date) RETURNS void
 *	Makes the partitions of these days where they are missing. Refuses days before 1970 or more than a year from now, and more
 *	than 3,660 at a time.
 *
 * wattle_begin(run uuid) RETURNS TABLE (table_name text, mark bigint, n bigint, ids text)
 *	Makes the run's row in `recording` (its writer: session_user) unless it is there, locks it until the transaction ends, so
 *	that two senders of one run queue up, and returns what of the run has been sent: its rows of `sent`; none for a new one.
 *	42501 when another writer began that run.
 *
 * wattle_put(run uuid, rows jsonb) RETURNS void
 *	Rows of the small tables, which replace those with the same key: {"run": [{"key", "value"}…], "device": [{"id", …}…],
 *	"segment": [{"id", …}…], "metric": [{"table_name", "name", …}…], "process": [{"pid", "start_ns", "time", …}…],
 *	"block": [{"name", …}…], "recording": {"user_name", "host", …}}, the columns in tables.c, and in "recording"
 *	also "host_unix_s", the host's clock now (a number), which becomes clock_offset_s. A part that is missing says nothing; "block" replaces
 *	all blocks of the run; a key of "recording" that is missing leaves its column alone. Keys that are no columns are passed over.
 *
 * wattle_mark(run uuid, marks jsonb) RETURNS void
 *	[{"table_name", "mark", "n", "ids"}…] into `sent`. mark: t_ns of the last row sent of sample, device_sample, process_sample;
 *	rowid of user_metric and event. ids: of span, as text of an int8multirange: a span is sent once it has ended, and spans end
 *	in another order than they begin. n: rows sent in all, to be compared with the run file's.
 *
 * COPY fills sample, device_sample, process_sample, span, user_metric and event: run_id, time, the run file's columns by name, and
 * level in sample and device_sample. Columns of the server that the sender does not know stay null, those it lacks are left out
 * (pg_attribute tells; it is open to everybody). */

#define PG_CALL_DAYS "SELECT wattle_days($1::date, $2::date)"
#define PG_CALL_BEGIN "SELECT table_name, mark, n, ids FROM wattle_begin($1::uuid)"
#define PG_CALL_PUT "SELECT wattle_put($1::uuid, $2::jsonb)"
#define PG_CALL_MARK "SELECT wattle_mark($1::uuid, $2::jsonb)"

/* Which of a device's (or the run's) samples a row of sample or device_sample is. The first and the last of a segment, and rows with
 * energy_raw_uj, are of level 0: those who read no more than that see all of a run's energy. */
enum pg_level {
	PG_LEVEL_MINUTE, // the first in its minute of the run's clock
	PG_LEVEL_SECOND, // the first in its second
	PG_LEVEL_REST,
};

/* Old days dropped from a store. */

struct pg;

struct pg_prune {
	char before[32]; // the day, "2026-01-31": whatever is older goes
	int64_t days;    // that had partitions, and were dropped (or would be)
	int64_t tables;  // those partitions
	int64_t runs;    // whose recordings ended before that day
	int64_t bytes;   // given back to the file system by the partitions
};

/* Whole days of UTC that lie older_ns and more before the server's clock, and the small rows of runs that ended before them. What
 * a run that went on has from those days goes with them. A drop waits for whoever reads or writes the table, and everybody else
 * behind it; so it gives up after two seconds and comes again. dry: nothing is dropped, only counted.
 * -EACCES: the store is somebody else's; -EAGAIN: tables were in use all the time. What was dropped until then stays dropped. */
int pg_prune(struct pg *pg, int64_t older_ns, bool dry, struct pg_prune *ret_prune, struct wattle_error *reterr);

/* What a store holds, for those who look after it. */

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
