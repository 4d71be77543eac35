#include "store/postgres/tables.h"

#include "base/util.h"
#include "store/postgres/pq.h"

#include <errno.h>

/* Tables are found by the store's schema: $1. */

static const char totals_sql[] =
	"SELECT (SELECT count(*) FROM recording), (SELECT count(*) FROM recording WHERE complete IS NOT TRUE), "
	"(SELECT count(DISTINCT job_id) FROM recording), (SELECT count(DISTINCT host) FROM recording), "
	"(SELECT count(DISTINCT user_name) FROM recording), (SELECT min(started) FROM recording), "
	"(SELECT max(started) FROM recording), (SELECT max(changed) FROM sent), "
	"(SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = 'recording'::regclass), "
	"current_setting('server_version'), "
	"(SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = $1::regnamespace)";

static const char days_sql[] =
	"SELECT count(*), to_date(min(d.day), 'YYYYMMDD')::text, to_date(max(d.day), 'YYYYMMDD')::text "
	"FROM (SELECT DISTINCT right(c.relname, 8) AS day "
	"FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent "
	"WHERE p.relnamespace = $1::regnamespace AND p.relname IN (SELECT b.name FROM wattle_big b)) d";

static const char tables_sql[] =
	"SELECT b.name, sum(CASE WHEN c.reltuples >= 0 THEN c.reltuples END)::bigint, sum(pg_total_relation_size(c.oid))::bigint "
	"FROM wattle_big b, LATERAL pg_partition_tree(b.name::regclass) t JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf "
	"GROUP BY b.name ORDER BY 3 DESC NULLS LAST, 1";

static const char roles_sql[] =
	"SELECT pg_get_userbyid(a.grantee)::text, bool_or(a.privilege_type = 'INSERT'), bool_or(a.privilege_type = 'SELECT') "
	"FROM pg_class c, LATERAL aclexplode(c.relacl) a WHERE c.oid = 'sample'::regclass AND a.grantee NOT IN (0, c.relowner) "
	"GROUP BY a.grantee ORDER BY 1";

static const char *keep(struct arena *arena, const struct pg_rows *rows, size_t row, size_t column)
{
	return arena_text(arena, pg_text(rows, row, column));
}

static int fill_totals(const struct pg_rows *rows, struct arena *arena, struct pg_status *status)
{
	status->runs = pg_i64(rows, 0, 0);
	status->incomplete = pg_i64(rows, 0, 1);
	status->jobs = pg_i64(rows, 0, 2);
	status->hosts = pg_i64(rows, 0, 3);
	status->users = pg_i64(rows, 0, 4);
	status->first_wall_ns = pg_time_ns(rows, 0, 5);
	status->last_wall_ns = pg_time_ns(rows, 0, 6);
	status->last_batch_wall_ns = pg_time_ns(rows, 0, 7);
	status->owner = keep(arena, rows, 0, 8);
	status->server = keep(arena, rows, 0, 9);
	status->bytes = pg_i64(rows, 0, 10);
	return status->owner != NULL && status->server != NULL ? 0 : -ENOMEM;
}

static int fill_days(const struct pg_rows *rows, struct arena *arena, struct pg_status *status)
{
	status->days = pg_i64(rows, 0, 0);
	status->first_day = keep(arena, rows, 0, 1);
	status->last_day = keep(arena, rows, 0, 2);
	return 0;
}

static int fill_tables(const struct pg_rows *rows, struct arena *arena, struct pg_status *status)
{
	status->tables = arena_alloc(arena, rows->n, sizeof(*status->tables));
	for (size_t i = 0; status->tables != NULL && i < rows->n; i++)
		status->tables[status->n_tables++] = (struct pg_table_status){
			.name = keep(arena, rows, i, 0),
			.rows = pg_i64(rows, i, 1),
			.bytes = pg_i64(rows, i, 2),
		};
	return status->tables != NULL ? 0 : -ENOMEM;
}

static int fill_roles(const struct pg_rows *rows, struct arena *arena, struct pg_status *status)
{
	status->roles = arena_alloc(arena, rows->n, sizeof(*status->roles));
	for (size_t i = 0; status->roles != NULL && i < rows->n; i++)
		status->roles[status->n_roles++] = (struct pg_role_status){
			.name = keep(arena, rows, i, 0),
			.writes = pg_i64(rows, i, 1) == 1,
			.reads = pg_i64(rows, i, 2) == 1,
		};
	return status->roles != NULL ? 0 : -ENOMEM;
}

static const struct {
	const char *sql;
	bool has_schema;
	int (*fill)(const struct pg_rows *rows, struct arena *arena, struct pg_status *status);
} questions[] = {
	{totals_sql, true, fill_totals},
	{days_sql, true, fill_days},
	{tables_sql, false, fill_tables},
	{roles_sql, false, fill_roles},
};

int pg_status_read(struct pg *pg, struct arena *arena, struct pg_status *ret_status, struct wattle_error *reterr)
{
	struct pg_status status = {0};
	int r = pg_store_check(pg, reterr);
	if (r == 0)
		r = pg_store_read_status(pg, &status.store, reterr);
	const char *const schema = status.store.schema;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(questions); i++) {
		struct pg_rows rows = {0};
		r = pg_query(pg, questions[i].sql, &schema, questions[i].has_schema ? 1 : 0, &rows, reterr);
		if (r == 0 && questions[i].fill(&rows, arena, &status) < 0)
			r = error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
		pg_rows_finish(&rows);
	}
	if (r == 0)
		*ret_status = status;
	return r;
}
