/* Loads the runs of a job from a store. */
#include "store/job_runs.h"
#include "store/postgres/load.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char jobs_sql[] =
	"SELECT job_id FROM recording WHERE job_id IS NOT NULL GROUP BY job_id ORDER BY max(started) DESC NULLS LAST LIMIT 9";

/* $1 is the job's id or ID@CLUSTER, because schedulers of several clusters assign the same ids. For incomplete runs the number
 * of samples is the number received by the store. */
static const char runs_sql[] =
	"SELECT r.run_id::text, r.job_step, coalesce((SELECT s.n FROM sent s WHERE s.run_id = r.run_id AND s.table_name = 'sample'), 0), "
	"coalesce((SELECT s.n FROM sent s WHERE s.run_id = r.run_id AND s.table_name = 'span'), 0), "
	"coalesce(r.interval_ns, 100000000), r.job_cluster, r.job_id FROM recording r WHERE r.job_id = $1 OR "
	"r.job_id = regexp_replace($1, '@[^@]*$', '') AND r.job_cluster = substring($1 from '@([^@]*)$') "
	"ORDER BY r.rank, r.restart, r.started, 1";

enum { RUN_ID, STEP, SAMPLES, SPANS, INTERVAL, CLUSTER, JOB };

// Runs without a cluster are compatible with any cluster.
static int check_cluster(const struct pg_rows *rows, const char *where, struct wattle_error *reterr)
{
	const char *first = NULL;
	for (size_t i = 0; i < rows->n; i++) {
		const char *cluster = pg_text(rows, i, CLUSTER);
		if (cluster == NULL)
			continue;
		if (first != NULL && strcmp(first, cluster) != 0)
			return error_set(reterr, -EINVAL,
				"%s has runs of job %s from several clusters: choose one with --job %s@%s or "
				"--job %s@%s",
				where, pg_text(rows, i, JOB), pg_text(rows, i, JOB), first, pg_text(rows, i, JOB),
				cluster);
		first = cluster;
	}
	return 0;
}

// Lists the existing jobs, newest first, and selects one.
static int choose(struct pg *pg, const struct job_choice *choice, const char *where, struct job_runs *runs,
	struct wattle_error *reterr)
{
	struct job_entry entries[JOB_NAMES_MAX + 2];
	struct pg_rows rows = {0};
	int r = pg_query(pg, jobs_sql, NULL, 0, &rows, reterr);
	size_t n = r == 0 ? rows.n : 0;
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct job_entry){.job_id = pg_text(&rows, i, 0), .in_job = true};
	if (r == 0)
		r = job_choose(choice, entries, n, where, &runs->job_id, reterr);
	runs->job_id = r == 0 ? arena_text(runs->arena, runs->job_id) : NULL;
	pg_rows_finish(&rows);
	return r;
}

static int load_run(struct pg_loader *loader, const char *id, const struct run_extent *extent, struct job_runs *runs,
	struct wattle_error *reterr)
{
	struct job_run *run = &runs->runs[runs->n];
	int r = pg_run_load(loader, id, extent, &run->run, reterr);
	if (r < 0)
		return r;
	run->where = arena_text(runs->arena, id);
	runs->n++;
	return extent->no_spans ? pg_blocks_load(loader, id, runs->arena, &run->blocks, &run->n_blocks, reterr) : 0;
}

static bool is_wanted(const struct job_choice *choice, const struct pg_rows *rows, size_t i)
{
	const char *step = pg_text(rows, i, STEP);
	return choice->step == NULL || (step != NULL && strcmp(step, choice->step) == 0);
}

static struct run_extent extent_of(const struct job_choice *choice, const struct pg_rows *rows)
{
	struct job_weight weight = {0};
	int64_t spans = 0;
	for (size_t i = 0; i < rows->n; i++) {
		if (!is_wanted(choice, rows, i))
			continue;
		weight.samples += (double)pg_i64(rows, i, SAMPLES);
		weight.duration_s += (double)pg_i64(rows, i, SAMPLES) * (double)pg_i64(rows, i, INTERVAL) * 1e-9;
		spans += pg_i64(rows, i, SPANS);
	}
	return (struct run_extent){
		.every_ns = job_every_ns(&weight, choice->all_samples),
		.no_spans = spans > JOB_SPANS_MAX && !choice->all_samples,
	};
}

static int load_runs(struct pg_loader *loader, const struct job_choice *choice, const struct pg_rows *rows,
	const char *where, struct job_runs *runs, struct wattle_error *reterr)
{
	const struct run_extent extent = extent_of(choice, rows);
	int r = 0;
	runs->every_ns = extent.every_ns;
	runs->runs = arena_alloc(runs->arena, rows->n, sizeof(*runs->runs));
	if (runs->runs == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", where);
	for (size_t i = 0; r == 0 && i < rows->n; i++)
		if (is_wanted(choice, rows, i))
			r = load_run(loader, pg_text(rows, i, RUN_ID), &extent, runs, reterr);
	return r == 0 && runs->n == 0 ? job_fail_step(choice, where, reterr) : r;
}

static int load(struct pg *pg, const struct job_choice *choice, struct job_runs *runs, struct wattle_error *reterr)
{
	char where[320];
	struct pg_loader *loader = NULL;
	struct pg_rows rows = {0};
	snprintf(where, sizeof(where), "the store at %s", pg_where(pg));
	int r = pg_store_check(pg, reterr);
	if (r == 0)
		r = pg_loader_open(pg, &loader, reterr);
	if (r < 0)
		return r;
	runs->job_id = choice->job_id != NULL ? arena_text(runs->arena, choice->job_id) : NULL;
	// A named job is queried by name first; the other jobs are read only if that fails.
	if (choice->job_id != NULL)
		r = pg_query(pg, runs_sql, &choice->job_id, 1, &rows, reterr);
	if (r == 0 && rows.n == 0) {
		pg_rows_finish(&rows);
		r = choose(pg, choice, where, runs, reterr);
		if (r == 0)
			r = pg_query(pg, runs_sql, &runs->job_id, 1, &rows, reterr);
	}
	if (r == 0)
		r = check_cluster(&rows, where, reterr);
	if (r == 0 && rows.n > 0)
		runs->job_id = arena_text(runs->arena, pg_text(&rows, 0, JOB));
	if (r == 0)
		r = load_runs(loader, choice, &rows, where, runs, reterr);
	pg_rows_finish(&rows);
	pg_loader_close(loader);
	return r;
}

int job_runs_from_store(struct pg *pg, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr)
{
	struct job_runs runs = {.arena = arena_new()};
	if (runs.arena == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	int r = load(pg, choice, &runs, reterr);
	if (r < 0) {
		job_runs_finish(&runs);
		return r;
	}
	job_sort(&runs);
	*ret_runs = runs;
	return 0;
}
