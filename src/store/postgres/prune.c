#include "store/postgres/tables.h"

#include "base/util.h"
#include "store/postgres/pq.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// The partitions of whole days before $1, oldest first; the name of a partition ends with its day.
static const char parts_sql[] =
	"SELECT c.oid::regclass::text, right(c.relname, 8), (SELECT coalesce(sum(pg_total_relation_size(t.relid)), 0)::bigint "
	"FROM pg_partition_tree(c.oid) t) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
	"JOIN wattle_big b ON i.inhparent = to_regclass(quote_ident(b.name)) "
	"WHERE right(c.relname, 8) < to_char($1::date::timestamp, 'YYYYMMDD') ORDER BY 2, 1";

// A run without a recorded end is as old as its last rows.
#define OLD_RUNS                                                                                                              \
	"FROM recording r WHERE coalesce(r.ended, (SELECT max(s.changed) FROM sent s WHERE s.run_id = r.run_id), r.started, " \
	"'-infinity') < $1::date"

static int find_day(struct pg *pg, int64_t older_ns, struct pg_prune *prune, struct wattle_error *reterr)
{
	char seconds[32];
	const char *const parameter = seconds;
	struct pg_rows rows = {0};
	snprintf(seconds, sizeof(seconds), "%lld", (long long)(older_ns / NS_PER_S));
	int r = pg_query(pg,
		"SELECT to_char(date_trunc('day', (now() AT TIME ZONE 'UTC') - make_interval(secs => $1::float8)), 'YYYY-MM-DD')",
		&parameter, 1, &rows, reterr);
	const char *day = r == 0 ? pg_text(&rows, 0, 0) : NULL;
	snprintf(prune->before, sizeof(prune->before), "%s", day != NULL ? day : "");
	pg_rows_finish(&rows);
	return r;
}

/* ---- days ---- */

enum { TRIES = 15 };

static int drop(struct pg *pg, const char *table, struct wattle_error *reterr)
{
	char sql[256];
	int r = -EAGAIN;
	snprintf(sql, sizeof(sql), "BEGIN; SET LOCAL lock_timeout = '2s'; DROP TABLE %s; COMMIT", table);
	for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
		const struct timespec pause = {.tv_sec = i > 0};
		nanosleep(&pause, NULL);
		r = pg_exec(pg, sql, reterr);
		if (r < 0)
			pg_exec(pg, "ROLLBACK", NULL);
	}
	// -ENOENT: another process dropped the partition at the same time.
	return r == -ENOENT ? 0 : r;
}

static int drop_parts(struct pg *pg, bool dry, struct pg_prune *prune, struct wattle_error *reterr)
{
	const char *const day = prune->before;
	struct pg_rows rows = {0};
	int r = pg_query(pg, parts_sql, &day, 1, &rows, reterr);
	const char *last = "";
	for (size_t i = 0; r == 0 && i < rows.n; i++) {
		const char *table = pg_text(&rows, i, 0), *its_day = pg_text(&rows, i, 1);
		r = dry ? 0 : drop(pg, table, reterr);
		if (r < 0)
			break;
		prune->days += strcmp(its_day, last) != 0;
		prune->tables++;
		prune->bytes += pg_i64(&rows, i, 2);
		last = its_day;
	}
	pg_rows_finish(&rows);
	return r;
}

/* ---- runs ---- */

/* The row of `recording` is deleted last: while it exists the run is known, and its other rows are found through it. A sender
 * that returns with such a run starts it anew. A sender that is active now holds the row's lock, so the deletion waits for it;
 * the marks that it wrote are deleted too. */
static const char *const delete_sql[] = {
	"CREATE TEMP TABLE wattle_old ON COMMIT DROP AS SELECT r.run_id " OLD_RUNS " FOR UPDATE OF r",
	"DELETE FROM run t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM segment t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM device t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM process t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM block t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM metric t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM sent t USING wattle_old o WHERE t.run_id = o.run_id",
	"DELETE FROM recording t USING wattle_old o WHERE t.run_id = o.run_id",
};

static int count_runs(struct pg *pg, struct pg_prune *prune, struct wattle_error *reterr)
{
	const char *const day = prune->before;
	struct pg_rows rows = {0};
	int r = pg_query(pg, "SELECT count(*) " OLD_RUNS, &day, 1, &rows, reterr);
	if (r == 0)
		prune->runs = pg_i64(&rows, 0, 0);
	pg_rows_finish(&rows);
	return r;
}

static int delete_runs(struct pg *pg, struct pg_prune *prune, struct wattle_error *reterr)
{
	const char *const day = prune->before;
	int r = pg_exec(pg, "BEGIN", reterr);
	if (r == 0)
		r = count_runs(pg, prune, reterr);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(delete_sql); i++)
		r = pg_query(pg, delete_sql[i], &day, i == 0 ? 1 : 0, NULL, reterr);
	return pg_end(pg, r, reterr);
}

int pg_prune(struct pg *pg, int64_t older_ns, bool dry, struct pg_prune *ret_prune, struct wattle_error *reterr)
{
	struct pg_store store;
	struct pg_prune prune = {0};
	int r = pg_store_check(pg, reterr);
	if (r == 0)
		r = pg_store_read_status(pg, &store, reterr);
	if (r == 0 && !dry && !store.is_ours)
		return error_set(reterr, -EACCES,
			"only the owner of the store at %s can drop old days; role %s is not its owner", pg_where(pg),
			store.role);
	if (r == 0)
		r = find_day(pg, older_ns, &prune, reterr);
	if (r == 0)
		r = drop_parts(pg, dry, &prune, reterr);
	if (r == 0)
		r = dry ? count_runs(pg, &prune, reterr) : delete_runs(pg, &prune, reterr);
	*ret_prune = prune;
	return r;
}
