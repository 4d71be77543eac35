#include "store/postgres/tables.h"

#include "base/util.h"
#include "metric/metric.h"
#include "store/postgres/pq.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SQL_CEILING = 1 << 22 };

/* ---- reading the state ---- */

static void copy_name(const struct pg_rows *rows, size_t column, char out[PG_NAME_SIZE])
{
	const char *name = pg_text(rows, 0, column);
	snprintf(out, PG_NAME_SIZE, "%s", name != NULL ? name : "");
}

// wattle_version identifies a store: the tables are in the first schema of the search path that has it.
static const char status_sql[] =
	"SELECT coalesce(n.nspname, current_schema())::text, current_user::text, p.oid IS NOT NULL, "
	"coalesce(pg_has_role(p.proowner, 'USAGE'), false), "
	"coalesce(has_schema_privilege(current_schema(), 'CREATE'), false), "
	"coalesce(has_function_privilege(p.oid, 'EXECUTE'), false), "
	"coalesce(has_function_privilege(to_regprocedure('wattle_begin(uuid)'), 'EXECUTE'), false), "
	"coalesce(has_table_privilege(to_regclass('recording'), 'SELECT'), false) "
	"FROM (SELECT to_regprocedure('wattle_version()') AS oid) f LEFT JOIN pg_proc p ON p.oid = f.oid "
	"LEFT JOIN pg_namespace n ON n.oid = p.pronamespace";

static int read_version(struct pg *pg, struct pg_store *store, struct wattle_error *reterr)
{
	struct pg_rows rows;
	int r = pg_query(pg, "SELECT version, compatible FROM wattle_version()", NULL, 0, &rows, reterr);
	if (r < 0)
		return r;
	store->version = pg_i64(&rows, 0, 0);
	store->compatible = pg_i64(&rows, 0, 1);
	pg_rows_finish(&rows);
	return 0;
}

/* From here on names refer to the store's tables only, not to an `event` or `sample` of another program in an earlier schema of
 * the path, nor to temporary tables. */
static int use_this_schema_only(struct pg *pg, const char *schema, struct wattle_error *reterr)
{
	return pg_query(pg, "SELECT set_config('search_path', quote_ident($1) || ', pg_temp', false)", &schema, 1, NULL,
		reterr);
}

int pg_store_read_status(struct pg *pg, struct pg_store *ret_store, struct wattle_error *reterr)
{
	struct pg_rows rows;
	int r = pg_query(pg, status_sql, NULL, 0, &rows, reterr);
	if (r < 0)
		return r;
	struct pg_store store = {.version = VALUE_MISSING, .compatible = VALUE_MISSING};
	copy_name(&rows, 0, store.schema);
	copy_name(&rows, 1, store.role);
	store.exists = pg_i64(&rows, 0, 2) == 1;
	store.is_ours = pg_i64(&rows, 0, 3) == 1;
	store.may_create = !store.exists && pg_i64(&rows, 0, 4) == 1;
	store.may_query = pg_i64(&rows, 0, 5) == 1;
	store.may_write = pg_i64(&rows, 0, 6) == 1;
	store.may_read = pg_i64(&rows, 0, 7) == 1;
	pg_rows_finish(&rows);
	r = store.may_query ? read_version(pg, &store, reterr) : 0;
	if (r == 0 && store.exists)
		r = use_this_schema_only(pg, store.schema, reterr);
	if (r == 0)
		*ret_store = store;
	return r;
}

static int fail_missing(struct pg *pg, const struct pg_store *store, struct wattle_error *reterr)
{
	if (store->schema[0] == '\0')
		return error_set(reterr, -ENOENT,
			"PostgreSQL at %s: the search path of role %s names no existing schema",
			pg_where(pg), store->role);
	return error_set(reterr, -ENOENT,
		"PostgreSQL at %s has no store of wattle in its schema %s, and role %s may not create one: "
		"its owner must run `wattle store init URL`",
		pg_where(pg), store->schema, store->role);
}

static int fail_right(struct pg *pg, const struct pg_store *store, const char *what, const char *option,
	struct wattle_error *reterr)
{
	return error_set(reterr, -EACCES,
		"role %s may not %s the store at %s: its owner must run `wattle store init URL %s %s`", store->role,
		what, pg_where(pg), option, store->role);
}

static int check_version(struct pg *pg, const struct pg_store *store, struct wattle_error *reterr)
{
	if (store->compatible > PG_SCHEMA_VERSION)
		return error_set(reterr, -ENOTSUP,
			"the store at %s was made by a newer wattle (schema %lld; this wattle supports up to "
			"%d): update wattle",
			pg_where(pg), (long long)store->version, PG_SCHEMA_VERSION);
	return 0;
}

int pg_store_check(struct pg *pg, struct wattle_error *reterr)
{
	struct pg_store store;
	int r = pg_store_read_status(pg, &store, reterr);
	if (r < 0)
		return r;
	if (!store.exists)
		return error_set(reterr, -ENOENT,
			"PostgreSQL at %s has no store of wattle in the search path of role %s: check the "
			"database name, or create a store with `wattle store init URL`",
			pg_where(pg), store.role);
	if (!store.may_read || !store.may_query)
		return fail_right(pg, &store, "read", "--reader", reterr);
	return check_version(pg, &store, reterr);
}

/* ---- creating ---- */

static int count_missing_columns(struct pg *pg, int64_t *ret_n, struct wattle_error *reterr)
{
	struct buf sql;
	struct pg_rows rows = {0};
	buf_init(&sql, SQL_CEILING);
	pg_missing_columns_sql(&sql);
	int r = sql.failed != 0 ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
				: pg_query(pg, sql.data, NULL, 0, &rows, reterr);
	if (r == 0)
		*ret_n = pg_i64(&rows, 0, 0);
	pg_rows_finish(&rows);
	buf_finish(&sql);
	return r;
}

// Whether the store exists and has at least our schema. Anything newer is left unchanged.
static int is_current(struct pg *pg, const struct pg_store *store, bool *ret_current, struct wattle_error *reterr)
{
	int64_t missing = 0;
	bool is_older = !value_ok(store->version) || store->version < PG_SCHEMA_VERSION;
	int r = is_older || store->version > PG_SCHEMA_VERSION ? 0 : count_missing_columns(pg, &missing, reterr);
	*ret_current = !is_older && missing == 0;
	return r;
}

// Runs a statement that the server builds by format(…) with one parameter, so that the server quotes identifiers.
static int exec_formatted(struct pg *pg, const char *format, const char *parameter, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = pg_query(pg, format, &parameter, 1, &rows, reterr);
	if (r == 0)
		r = pg_exec(pg, pg_text(&rows, 0, 0), reterr);
	pg_rows_finish(&rows);
	return r;
}

// The lock key is "WTL1" and 2: one process creates the schema at a time. lock_timeout limits the wait for a table, so that the
// users of the table are not blocked behind it.
static const char begin_sql[] = "BEGIN; SET LOCAL lock_timeout = '20s'; SET LOCAL client_min_messages = warning; "
				"SELECT pg_advisory_xact_lock(1465142321, 2)";

static int make_tables(struct pg *pg, const char *schema, struct wattle_error *reterr)
{
	struct buf sql;
	buf_init(&sql, SQL_CEILING);
	pg_tables_sql(&sql);
	int r = exec_formatted(pg, "SELECT format('SET LOCAL search_path = %I', $1::text)", schema, reterr);
	if (r == 0)
		r = sql.failed != 0 ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
				    : pg_exec(pg, sql.data, reterr);
	buf_finish(&sql);
	return r;
}

// Checked again under the lock: another process may have made the change.
static int make_locked(struct pg *pg, bool *ret_changed, struct wattle_error *reterr)
{
	struct pg_store store;
	bool current = false;
	int r = pg_store_read_status(pg, &store, reterr);
	if (r == 0)
		r = is_current(pg, &store, &current, reterr);
	if (r < 0 || current)
		return r;
	*ret_changed = true;
	return make_tables(pg, store.schema, reterr);
}

static int make(struct pg *pg, bool *ret_changed, struct wattle_error *reterr)
{
	int r = pg_exec(pg, begin_sql, reterr);
	if (r == 0)
		r = make_locked(pg, ret_changed, reterr);
	return pg_end(pg, r, reterr);
}

int pg_store_ensure(struct pg *pg, bool *ret_changed, struct wattle_error *reterr)
{
	struct pg_store store;
	bool changed = false, current = false;
	int r = pg_store_read_status(pg, &store, reterr);
	if (r < 0)
		return r;
	if (!store.exists && !store.may_create)
		return fail_missing(pg, &store, reterr);
	if (store.exists && !store.is_ours && !(store.may_write && store.may_query))
		return fail_right(pg, &store, "write to", "--writer", reterr);
	if (store.exists && !store.is_ours)
		return check_version(pg, &store, reterr);
	r = check_version(pg, &store, reterr);
	if (r == 0)
		r = is_current(pg, &store, &current, reterr);
	if (r == 0 && !current)
		r = make(pg, &changed, reterr);
	if (r == 0 && ret_changed != NULL)
		*ret_changed = changed;
	return r;
}

/* ---- rights ---- */

static const char grant_schema[] =
	"SELECT format('GRANT USAGE ON SCHEMA %I TO %I', (SELECT n.nspname FROM pg_proc p JOIN pg_namespace n ON "
	"n.oid = p.pronamespace WHERE p.oid = 'wattle_version()'::regprocedure), $1::text)";

static const char *const grants[][3] = {
	[PG_WRITER] =
		{"SELECT format('GRANT INSERT ON sample, device_sample, process_sample, span, user_metric, event TO %I', $1::text)",
			"SELECT format('GRANT EXECUTE ON FUNCTION wattle_version(), wattle_days(date, date), wattle_begin(uuid), "
			"wattle_put(uuid, jsonb), wattle_mark(uuid, jsonb) TO %I', $1::text)"},
	[PG_READER] =
		{"SELECT format('GRANT SELECT ON recording, sent, run, segment, device, process, block, metric, sample, device_sample, "
		 "process_sample, span, user_metric, event, wattle_schema, wattle_big TO %I', $1::text)",
			"SELECT format('GRANT EXECUTE ON FUNCTION wattle_version() TO %I', $1::text)"},
};

static int make_role(struct pg *pg, const char *role, bool *ret_made, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = pg_query(pg, "SELECT 1 FROM pg_roles WHERE rolname = $1", &role, 1, &rows, reterr);
	bool exists = rows.n > 0;
	pg_rows_finish(&rows);
	*ret_made = r == 0 && !exists;
	return r == 0 && !exists ? exec_formatted(pg, "SELECT format('CREATE ROLE %I NOLOGIN', $1::text)", role, reterr)
				 : r;
}

/* A role that may create functions in the store's schema can make the store's own functions call them with the owner's rights.
 * In schema public of PostgreSQL 14, and in databases created by it, every role may do that. */
static int check_creator(struct pg *pg, const char *role, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = pg_query(pg,
		"SELECT n.nspname::text, has_schema_privilege('public', n.oid, 'CREATE') FROM pg_proc p "
		"JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = 'wattle_version()'::regprocedure "
		"AND has_schema_privilege($1::name, n.oid, 'CREATE') AND NOT pg_has_role($1::name, p.proowner, 'MEMBER')",
		&role, 1, &rows, reterr);
	if (r == 0 && rows.n > 0) {
		const char *schema = pg_text(&rows, 0, 0);
		r = error_set(reterr, -EACCES,
			"role %s may create functions in schema %s, and could make the store run them with "
			"its owner's rights: run `REVOKE CREATE ON SCHEMA %s FROM %s` first, or use a "
			"separate schema for the store",
			role, schema, schema, pg_i64(&rows, 0, 1) == 1 ? "PUBLIC" : role);
	}
	pg_rows_finish(&rows);
	return r;
}

// All or nothing: a created role without rights would be left behind unnoticed.
static int grant_all(struct pg *pg, enum pg_right right, const char *role, bool *ret_made_role,
	struct wattle_error *reterr)
{
	int r = make_role(pg, role, ret_made_role, reterr);
	if (r == 0)
		r = check_creator(pg, role, reterr);
	if (r == 0)
		r = exec_formatted(pg, grant_schema, role, reterr);
	for (size_t i = 0; r == 0 && grants[right][i] != NULL; i++)
		r = exec_formatted(pg, grants[right][i], role, reterr);
	return r;
}

int pg_store_grant(struct pg *pg, enum pg_right right, const char *role, bool *ret_made_role,
	struct wattle_error *reterr)
{
	struct pg_store store;
	int r = pg_store_read_status(pg, &store, reterr);
	if (r == 0 && !store.is_ours) // a GRANT by a role that is not the owner silently does nothing
		r = error_set(reterr, -EACCES,
			"only the owner of the store at %s can grant access; role %s is not its owner", pg_where(pg),
			store.role);
	if (r == 0)
		r = pg_exec(pg, "BEGIN", reterr);
	if (r < 0)
		return r;
	return pg_end(pg, grant_all(pg, right, role, ret_made_role, reterr), reterr);
}
