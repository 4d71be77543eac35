/* The tables and functions of a PostgreSQL store: their definition and maintenance. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a store in a database: existence, version and rights; creating it, migrating it, granting access. */

struct pg;

enum { PG_NAME_SIZE = 64 }; // length of an identifier, with NUL

struct pg_store {
	char schema[PG_NAME_SIZE]; // schema of the store; without a store, the schema in which it would be created; "" none
	char role[PG_NAME_SIZE];   // our role
	int64_t version;           // VALUE_MISSING: no store, or no access
	int64_t compatible;
	bool exists;
	bool is_ours;  // we may alter its tables
	bool may_create; // without a store: we may create one
	bool may_query;  // we may call wattle_version: we are a writer, a reader or the owner
	bool may_write, may_read;
};
int pg_store_read_status(struct pg *pg, struct pg_store *ret_store, struct wattle_error *reterr);

/* First call of writers: creates or migrates the store if we have the rights; otherwise the message names who has. *ret_changed
 * (may be NULL): the store was changed. -EACCES, -ENOENT, -ENOTSUP. */
int pg_store_ensure(struct pg *pg, bool *ret_changed, struct wattle_error *reterr);
// First call of readers: checks that the store exists, is readable and is compatible with this version of wattle.
int pg_store_check(struct pg *pg, struct wattle_error *reterr);

// Grants rights to a role and creates the role (NOLOGIN) if it is missing: a writer adds runs and reads nothing, a reader
// reads.
enum pg_right { PG_WRITER, PG_READER };
int pg_store_grant(struct pg *pg, enum pg_right right, const char *role, bool *ret_made_role,
	struct wattle_error *reterr);

/* The tables of a store in PostgreSQL (docs/postgresql.md): those of the run file, derived from the same two lists (metrics.def
 * and schema_columns), and a few of the store's own. Only builds SQL text; does not connect to a server. */

/* Increased with every change of tables or functions. `wattle store init`, and the first call of a role with the rights,
 * migrate an older store. The store states which older versions may continue to use it (wattle_schema.compatible). */
enum { PG_SCHEMA_VERSION = 1, PG_SCHEMA_COMPATIBLE = 1 };

/* Large tables, partitioned by time: one range partition per day (UTC), created on demand by wattle_days. COPY fills only these
 * tables; functions fill all others. */
struct pg_big_table {
	const char *name;
	const char *t_ns;    // the column whose wall-clock time is `time`
	bool has_level;      // each day is partitioned further by column `level`
	const char *indexes; // columns of the btree index of each leaf, except those of level 2 (docs/scale.md)
};
const struct pg_big_table *pg_big_tables(size_t *ret_count);
const struct pg_big_table *pg_big_table(const char *name); // NULL: not a large table

enum { PG_LEVELS = 3 }; // 0: first sample of a minute, 1: of a second, 2: all others

// A PostgreSQL column.
struct pg_column {
	const char *name, *type; // "bigint", "integer", "smallint", "double precision", "text", "uuid", "timestamptz" …
	bool not_null;
	const char *unit, *meaning; // "" none
	const char *fact;           // of table recording: key in table run of the value; NULL: none
};
enum { PG_COLUMNS_MAX = 80 };
// The columns of a table in order of creation. Returns their number, 0: no such table.
size_t pg_columns(const char *table, struct pg_column ret_columns[PG_COLUMNS_MAX]);

struct pg_table {
	const char *name;
	const char *key; // primary key together with run_id; NULL: none
	bool has_run;    // its first column is run_id
	const char *options;
};
const struct pg_table *pg_table(size_t i); // in order of creation; NULL after the last

/* Creates missing tables, columns, functions, rows of `metric` and the version in the current schema; existing ones are
 * unchanged. Run it in one transaction. Idempotent. */
void pg_tables_sql(struct buf *out);
// SELECT count(*) of the columns missing on the server.
void pg_missing_columns_sql(struct buf *out);
extern const char pg_functions_sql[]; // functions.sql

/* The interface between sender and server, shared by schema.c and send.c: the SQL functions that a writer may call, and the
 * tables that it fills by COPY. A writer has EXECUTE on these functions, INSERT on the tables of COPY, and nothing else.
 *
 * One batch is one transaction:
 *	BEGIN; wattle_begin(…); COPY …; COPY …; wattle_put(…); wattle_mark(…); COMMIT
 * The partitions for its rows are created before it (wattle_days), in a separate transaction.
 *
 * wattle_days(first date, last date) RETURNS void
 *	Creates the missing partitions of these days. Refuses days before 1970 or more than a year ahead, and more than 3,660
 *	days per call.
 *
 * wattle_begin(run uuid) RETURNS TABLE (table_name text, mark bigint, n bigint, ids text)
 *	Creates the run's row in `recording` (writer: session_user) if it is missing, and locks it until the transaction ends, so
 *	that two senders of one run take turns. Returns the run's rows of `sent`: how far each table has been sent; no rows for a
 *	new run. 42501 if another writer began the run.
 *
 * wattle_put(run uuid, rows jsonb) RETURNS void
 *	Rows of the small tables, which replace those with the same key: {"run": [{"key", "value"}…], "device": [{"id", …}…],
 *	"segment": [{"id", …}…], "metric": [{"table_name", "name", …}…], "process": [{"pid", "start_ns", "time", …}…],
 *	"block": [{"name", …}…], "recording": {"user_name", "host", …}}, the columns in tables.c, and in "recording"
 *	also "host_unix_s", the host's current time (a number), which becomes clock_offset_s. A missing part changes nothing;
 *	"block" replaces all blocks of the run; a missing key of "recording" leaves its column unchanged. Unknown keys
 *	are ignored.
 *
 * wattle_mark(run uuid, marks jsonb) RETURNS void
 *	Writes [{"table_name", "mark", "n", "ids"}…] to `sent`. mark: t_ns of the last sent row of sample, device_sample and
 *	process_sample; its rowid for user_metric and event. ids: for span, as text of an int8multirange, because a span is sent
 *	once it has ended, and spans end in another order than they begin. n: total number of sent rows, for comparison with the
 *	run file.
 *
 * COPY fills sample, device_sample, process_sample, span, user_metric and event: run_id, time, the run file's columns by name, and
 * level in sample and device_sample. Server columns unknown to the sender stay null; columns missing on the server are left out
 * (pg_attribute, which every role can read, lists them). */

#define PG_CALL_DAYS "SELECT wattle_days($1::date, $2::date)"
#define PG_CALL_BEGIN "SELECT table_name, mark, n, ids FROM wattle_begin($1::uuid)"
#define PG_CALL_PUT "SELECT wattle_put($1::uuid, $2::jsonb)"
#define PG_CALL_MARK "SELECT wattle_mark($1::uuid, $2::jsonb)"

/* The level of a row of sample or device_sample among the samples of the run or of a device. The first and the last sample of a
 * segment, and rows with energy_raw_uj, have level 0: reading level 0 alone gives the whole energy of a run. */
enum pg_level {
	PG_LEVEL_MINUTE, // the first sample in its minute of the run's clock
	PG_LEVEL_SECOND, // the first sample in its second
	PG_LEVEL_REST,
};

/* Deletes old days from a store. */

struct pg;

struct pg_prune {
	char before[32]; // the day, "2026-01-31": older data is deleted
	int64_t days;    // days with partitions that were dropped (or would be)
	int64_t tables;  // number of those partitions
	int64_t runs;    // runs whose recordings ended before that day
	int64_t bytes;   // bytes freed in the file system by the partitions
};

/* Drops whole days (UTC) that are at least older_ns before the server's clock, and the small rows of runs that ended before
 * them. Rows of these days are dropped even if their run continued later. A drop waits for readers and writers of the table,
 * and all later users wait behind it; so it gives up after two seconds and tries again. dry: only counts. -EACCES: we do not
 * own the store; -EAGAIN: tables were in use all the time. What was dropped by then stays dropped. */
int pg_prune(struct pg *pg, int64_t older_ns, bool dry, struct pg_prune *ret_prune, struct wattle_error *reterr);

/* The contents of a store, for its administrators. */

struct pg;

struct pg_table_status { // a table partitioned by day
	const char *name;
	int64_t rows;  // estimate of the server; VALUE_MISSING unknown
	int64_t bytes; // including indexes
};

struct pg_role_status {
	const char *name;
	bool writes, reads;
};

struct pg_status {
	struct pg_store store;
	const char *owner, *server; // version of PostgreSQL
	int64_t runs, incomplete, jobs, hosts, users;
	int64_t first_wall_ns, last_wall_ns; // start times of the first and the last run; VALUE_MISSING none
	int64_t last_batch_wall_ns;          // time of the last received batch
	int64_t days;                        // days with partitions
	const char *first_day, *last_day;    // first and last of those days, "2026-01-31"; NULL none
	int64_t bytes;                       // total of tables and indexes
	struct pg_table_status *tables;
	size_t n_tables;
	struct pg_role_status *roles; // roles other than the owner
	size_t n_roles;
};
// Texts are in the arena. -EACCES, -ENOENT … with a message.
int pg_status_read(struct pg *pg, struct arena *arena, struct pg_status *ret_status, struct wattle_error *reterr);
