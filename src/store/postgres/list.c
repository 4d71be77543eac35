#include "store/postgres/load.h"

#include "base/util.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include <errno.h>
#include <stdio.h>

// A parameter that is null filters nothing.
static const char list_sql[] =
	"SELECT run_id::text, host, command, label, user_name, job_id, job_step, provenance, started, duration_s, segments, "
	"coalesce(samples, (SELECT s.n FROM sent s WHERE s.run_id = r.run_id AND s.table_name = 'sample')), exit_code, complete, rank, "
	"interval_ns, energy_j, error_j FROM recording r WHERE ($1::text IS NULL OR user_name = $1) AND ($2::text IS NULL OR job_id = $2) "
	"AND ($3::text IS NULL OR started >= to_timestamp($3::float8)) AND ($4::text IS NULL OR started < to_timestamp($4::float8)) "
	"ORDER BY started NULLS LAST, rank, run_id";

enum {
	N_TEXTS = 8,
	STARTED = N_TEXTS,
	DURATION,
	SEGMENTS,
	SAMPLES,
	EXIT_CODE,
	COMPLETE,
	RANK,
	INTERVAL,
	ENERGY,
	ERROR
};

static void fill(const struct pg_rows *rows, size_t i, struct arena *arena, struct run_listing *listing)
{
	const char **const texts[N_TEXTS] = {&listing->id, &listing->host, &listing->command_json, &listing->label,
		&listing->user, &listing->job_id, &listing->job_step, &listing->provenance};
	for (size_t c = 0; c < N_TEXTS; c++)
		*texts[c] = arena_text(arena, pg_text(rows, i, c));
	listing->wall_start_ns = pg_time_ns(rows, i, STARTED);
	listing->duration_s = pg_double(rows, i, DURATION);
	listing->segments = pg_i64(rows, i, SEGMENTS);
	listing->samples = pg_i64(rows, i, SAMPLES);
	listing->exit_code = pg_i64(rows, i, EXIT_CODE);
	listing->complete = pg_i64(rows, i, COMPLETE) == 1;
	listing->rank = pg_i64(rows, i, RANK);
	listing->interval_ns = pg_i64(rows, i, INTERVAL);
	listing->energy_j = pg_double(rows, i, ENERGY);
	listing->error_j = pg_double(rows, i, ERROR);
}

static const char *seconds(int64_t wall_ns, char out[40])
{
	if (!value_ok(wall_ns))
		return NULL;
	snprintf(out, 40, "%lld.%09lld", (long long)(wall_ns / NS_PER_S), (long long)(wall_ns % NS_PER_S));
	return out;
}

int pg_list_runs(struct pg *pg, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr)
{
	char since[40], until[40];
	const char *const parameters[] = {choice->user, choice->job_id, seconds(choice->since_wall_ns, since),
		seconds(choice->until_wall_ns, until)};
	struct pg_rows rows = {0};
	int r = pg_store_check(pg, reterr);
	if (r == 0)
		r = pg_query(pg, list_sql, parameters, ARRAY_SIZE(parameters), &rows, reterr);
	struct run_listing *listings = r == 0 ? arena_alloc(arena, rows.n, sizeof(*listings)) : NULL;
	if (r == 0 && listings == NULL)
		r = error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	for (size_t i = 0; r == 0 && i < rows.n; i++)
		fill(&rows, i, arena, &listings[i]);
	if (r == 0) {
		*ret_listings = listings;
		*ret_n = rows.n;
	}
	pg_rows_finish(&rows);
	return r;
}
