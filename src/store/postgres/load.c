#include "store/postgres/load.h"

#include "base/buf.h"
#include "base/intern.h"
#include "base/util.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"
#include "store/run_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct pg_loader {
	struct pg *pg; // borrowed
	struct arena *arena;
	struct intern columns; // "table.column" names that exist on the server
};

struct pg_run { // parts of the store that belong to the run
	struct pg_loader *loader;
	char id[PG_RUN_ID_SIZE];
	char times[160];  // condition on "time", so that only the run's days are scanned
	char levels[320]; // condition that selects the samples by level; "" all
	struct wattle_error *reterr;
	int code; // error code of a failure
};

/* ---- cells ---- */

static const struct pg_field *field(const void *row, int column)
{
	return (const struct pg_field *)row + column;
}

static int64_t cell_i64(const void *row, int column)
{
	return sql_in_range(pg_field_i64(field(row, column)));
}

static double cell_real(const void *row, int column)
{
	return pg_field_double(field(row, column));
}

static const char *cell_bytes(const void *row, int column, size_t *ret_size)
{
	const struct pg_field *cell = field(row, column);
	*ret_size = cell->size > 0 ? (size_t)cell->size : 0;
	return (const char *)cell->bytes;
}

static void cell_i64s(const void *row, int first, size_t n, int64_t *ret_values)
{
	for (size_t i = 0; i < n; i++)
		ret_values[i] = cell_i64(row, first + (int)i);
}

static const struct cells_ops ops = {cell_i64, cell_real, cell_bytes, cell_i64s};

/* ---- the source ---- */

static bool has_column(struct run_reader *reader, const char *table, const char *column)
{
	char name[128];
	int length = snprintf(name, sizeof(name), "%s.%s", table, column);
	return length > 0 && intern_find(&reader->server->loader->columns, name, (size_t)length) >= 0;
}

struct taking {
	run_take *take;
	void *data;
	int result; // return value of take
};

static int take_fields(void *data, const struct pg_field *fields, size_t n_fields)
{
	struct taking *taking = data;
	const struct cells cells = {&ops, fields};
	(void)n_fields;
	taking->result = taking->take(taking->data, &cells);
	return taking->result != 0 ? -ENOMEM : 0;
}

static void add_question(struct buf *sql, const struct pg_run *run, const struct run_question *question)
{
	const struct pg_big_table *big = pg_big_table(question->table);
	buf_printf(sql, "COPY (SELECT %s FROM %s WHERE run_id = '%s'", question->columns, question->table, run->id);
	if (big != NULL)
		buf_printf(sql, " AND %s", run->times);
	if (big != NULL && big->has_level && question->in_time && run->levels[0] != '\0')
		buf_printf(sql, " AND %s", run->levels);
	if (question->where != NULL)
		buf_printf(sql, " AND %s", question->where);
	if (question->group != NULL)
		buf_printf(sql, " GROUP BY %s", question->group);
	// Facts have no order in PostgreSQL; sorted because reports list those of --meta.
	const char *order = question->order == NULL && strcmp(question->table, "run") == 0 ? "key" : question->order;
	if (order != NULL)
		buf_printf(sql, " ORDER BY %s", order);
	buf_str(sql, ") TO STDOUT (FORMAT binary)");
}

static int read_rows(struct run_reader *reader, const struct run_question *question, run_take *take, void *data)
{
	struct pg_run *run = reader->server;
	struct taking taking = {.take = take, .data = data};
	struct buf sql;
	buf_init(&sql, 65536);
	add_question(&sql, run, question);
	int r = sql.failed != 0 ? -ENOMEM : pg_copy_out(run->loader->pg, sql.data, take_fields, &taking, run->reterr);
	buf_finish(&sql);
	if (r < 0 && taking.result == 0)
		run->code = r;
	return taking.result != 0 ? taking.result : r;
}

static int take_number(void *data, const struct cells *cells)
{
	*(int64_t *)data = cells_i64(cells, 0);
	return 0;
}

static int max_spans(struct run_reader *reader, size_t *ret_n)
{
	static const struct run_question question = {"span", "count(*)"};
	int64_t n = 0;
	int r = read_rows(reader, &question, take_number, &n);
	*ret_n = (size_t)n;
	return r;
}

static const struct run_source source = {
	.has_column = has_column,
	.read = read_rows,
	.max_spans = max_spans,
	.sample_count = {"sample", "count(*)", .in_time = true},
	.device_counts = {"device_sample", "device, count(*)", .group = "device", .in_time = true},
};

/* ---- extent of a run ---- */

/* The days of a run, by its host's clock. A run in progress, or without a recorded end, may have rows up to the last batch,
 * whose time is known by the server's clock. The last column is the time of the newest received sample, if thinning may leave
 * that sample out. */
static const char times_sql[] =
	"SELECT coalesce((least(r.started, to_timestamp(min(g.wall_start_ns) / 1e9)) - interval '1 hour')::text, '-infinity'), "
	"coalesce((CASE WHEN r.complete THEN r.ended + interval '1 hour' ELSE greatest(r.ended, (SELECT max(s.changed) FROM sent s "
	"WHERE s.run_id = r.run_id) - make_interval(secs => coalesce(r.clock_offset_s, 0))) + interval '1 day' END)::text, "
	"'infinity'), CASE WHEN r.complete IS NOT TRUE THEN (SELECT s.mark FROM sent s WHERE s.run_id = r.run_id "
	"AND s.table_name = 'sample') END, (to_timestamp((max(g.wall_start_ns) + (SELECT s.mark FROM sent s WHERE s.run_id = r.run_id "
	"AND s.table_name = 'sample') - max(g.start_ns)) / 1e9) - interval '5 seconds')::text "
	"FROM recording r LEFT JOIN segment g ON g.run_id = r.run_id WHERE r.run_id = $1::uuid GROUP BY r.run_id";

static void choose_levels(struct pg_run *run, int64_t every_ns, int64_t newest_ns, const char *newest)
{
	char wanted[80], tail[160] = "";
	if (every_ns < NS_PER_S)
		return;
	if (every_ns >= 60 * NS_PER_S)
		snprintf(wanted, sizeof(wanted), "level = 0");
	else if (every_ns == NS_PER_S)
		snprintf(wanted, sizeof(wanted), "level <= 1");
	else // the first second of each period
		snprintf(wanted, sizeof(wanted), "(level = 0 OR level = 1 AND t_ns %% %lld < 1000000000)",
			(long long)every_ns);
	// The newest sample is always read: thinning cannot know which sample is the last.
	if (value_ok(newest_ns) && newest != NULL)
		snprintf(tail, sizeof(tail), " OR t_ns >= %lld AND \"time\" >= '%s'", (long long)newest_ns, newest);
	snprintf(run->levels, sizeof(run->levels), "(%s%s)", wanted, tail);
}

static int find_run(struct pg_run *run, const char *id, int64_t every_ns, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = pg_query(run->loader->pg, times_sql, &id, 1, &rows, reterr);
	if (r == 0 && rows.n == 0)
		r = error_set(reterr, -ENOENT, "the store at %s has no run %s", pg_where(run->loader->pg), id);
	if (r == 0) {
		snprintf(run->id, sizeof(run->id), "%s", id);
		snprintf(run->times, sizeof(run->times), "\"time\" BETWEEN '%s' AND '%s'", pg_text(&rows, 0, 0),
			pg_text(&rows, 0, 1));
		choose_levels(run, every_ns, pg_i64(&rows, 0, 2), pg_text(&rows, 0, 3));
	}
	pg_rows_finish(&rows);
	return r;
}

/* ---- loading ---- */

typedef int read_table(struct run_reader *reader, struct run *run);

static read_table *const all_tables[] = {run_read_metadata, run_read_devices, run_read_samples, run_read_device_samples,
	run_read_segments, run_read_processes, run_read_events, NULL};

static int read_tables(struct run_reader *reader, const struct run_extent *extent, struct run *run)
{
	int r = 0;
	for (read_table *const *tables = all_tables; r == 0 && *tables != NULL; tables++)
		r = (*tables)(reader, run);
	if (r == 0 && extent->every_ns == 0)
		r = run_read_process_samples(reader, run);
	if (r == 0 && !extent->no_spans)
		r = run_read_spans(reader, run);
	return r;
}

int pg_run_load(struct pg_loader *loader, const char *id, const struct run_extent *extent, struct run *ret_run,
	struct wattle_error *reterr)
{
	struct pg_run server = {.loader = loader, .reterr = reterr};
	int r = find_run(&server, id, extent->every_ns, reterr);
	if (r < 0)
		return r;
	struct run_reader reader = {.source = &source, .arena = arena_new(), .spool_fd = -1, .server = &server};
	struct run run = {.arena = reader.arena};
	int result = reader.arena == NULL ? SQLITE_NOMEM : read_tables(&reader, extent, &run);
	if (result != 0) {
		run_finish(&run);
		return server.code < 0 ? server.code : error_set(reterr, -ENOMEM, "run %s: out of memory", id);
	}
	run.anchor_mono_ns = run_metadata_i64(&run, "anchor_mono_ns");
	run.anchor_wall_ns = run_metadata_i64(&run, "anchor_wall_ns");
	*ret_run = run;
	return 0;
}

static void fill_block(const struct pg_rows *rows, size_t i, struct arena *arena, struct stored_block *block)
{
	size_t c = 0;
	block->name = arena_text(arena, pg_text(rows, i, c++));
#define BLOCK_COUNT(member, key, column, ...) block->column = pg_i64(rows, i, c++);
#define BLOCK_FIGURE(member, column, ...) block->column = pg_double(rows, i, c++);
#include "metric/blocks.def"
}

// A column missing in a store of an older wattle is unknown in every row.
static void query_blocks(struct buf *sql, const struct pg_loader *loader)
{
	static const char *const columns[] = {
#define BLOCK_COUNT(member, key, column, ...) "block." #column,
#define BLOCK_FIGURE(member, column, ...) "block." #column,
#include "metric/blocks.def"
	};
	buf_str(sql, "SELECT name");
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		buf_printf(sql, ", %s",
			intern_find(&loader->columns, columns[c], strlen(columns[c])) >= 0 ? columns[c] : "NULL");
	buf_str(sql, " FROM block WHERE run_id = $1::uuid ORDER BY name");
}

int pg_blocks_load(struct pg_loader *loader, const char *id, struct arena *arena, struct stored_block **ret_blocks,
	size_t *ret_n, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	struct buf sql;
	buf_init(&sql, 65536);
	query_blocks(&sql, loader);
	int r = sql.failed != 0 ? error_set(reterr, -ENOMEM, "run %s: out of memory", id)
				: pg_query(loader->pg, sql.data, &id, 1, &rows, reterr);
	buf_finish(&sql);
	struct stored_block *blocks = r == 0 ? arena_alloc(arena, rows.n, sizeof(*blocks)) : NULL;
	if (r == 0 && blocks == NULL)
		r = error_set(reterr, -ENOMEM, "run %s: out of memory", id);
	for (size_t i = 0; r == 0 && i < rows.n; i++)
		fill_block(&rows, i, arena, &blocks[i]);
	if (r == 0) {
		*ret_blocks = blocks;
		*ret_n = rows.n;
	}
	pg_rows_finish(&rows);
	return r;
}

/* ---- the loader ---- */

static const char columns_sql[] =
	"SELECT v.name || '.' || a.attname FROM unnest(ARRAY['run', 'segment', 'device', 'process', 'sample', 'device_sample', "
	"'process_sample', 'span', 'user_metric', 'event', 'block']) AS v (name) JOIN pg_attribute a ON a.attrelid = to_regclass(v.name) "
	"WHERE a.attnum > 0 AND NOT a.attisdropped";

static int learn_columns(struct pg_loader *loader, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = pg_query(loader->pg, columns_sql, NULL, 0, &rows, reterr);
	for (size_t i = 0; r == 0 && i < rows.n; i++) {
		const char *name = pg_text(&rows, i, 0);
		if (intern_number(&loader->columns, name, strlen(name)) < 0)
			r = error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	}
	pg_rows_finish(&rows);
	return r;
}

// One snapshot for all queries. No JIT: it would compile a plan per day, again and again, for the few rows of a rank.
static const char begin_sql[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off";

int pg_loader_open(struct pg *pg, struct pg_loader **ret_loader, struct wattle_error *reterr)
{
	struct pg_loader *loader = calloc(1, sizeof(*loader));
	if (loader == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	loader->pg = pg;
	loader->arena = arena_new();
	intern_init(&loader->columns, loader->arena);
	int r = loader->arena == NULL ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
				      : pg_exec(pg, begin_sql, reterr);
	if (r == 0)
		r = learn_columns(loader, reterr);
	if (r < 0) {
		pg_loader_close(loader);
		return r;
	}
	*ret_loader = loader;
	return 0;
}

void pg_loader_close(struct pg_loader *loader)
{
	if (loader == NULL)
		return;
	pg_exec(loader->pg, "ROLLBACK", NULL);
	intern_finish(&loader->columns);
	arena_free(loader->arena);
	free(loader);
}

/* ---- ids ---- */

static bool is_beginning(const char *text)
{
	size_t length = strlen(text);
	for (size_t i = 0; i < length; i++)
		if (!isxdigit((unsigned char)text[i]) && text[i] != '-')
			return false;
	return length > 0 && length < PG_RUN_ID_SIZE;
}

int pg_run_find(struct pg *pg, const char *prefix, char ret_id[PG_RUN_ID_SIZE], struct wattle_error *reterr)
{
	if (!is_beginning(prefix))
		return error_set(reterr, -EINVAL, "'%.60s' is not a run ID; `wattle list --store URL` shows the IDs",
			prefix);
	struct pg_rows rows = {0};
	int r = pg_query(pg,
		"SELECT run_id::text FROM recording WHERE run_id::text LIKE lower($1) || '%' ORDER BY 1 LIMIT 2",
		&prefix, 1, &rows, reterr);
	if (r == 0 && rows.n == 0)
		r = error_set(reterr, -ENOENT, "the store at %s has no run whose ID begins with %s", pg_where(pg),
			prefix);
	if (r == 0 && rows.n > 1)
		r = error_set(reterr, -EINVAL,
			"the store at %s has several runs whose IDs begin with %s (%s and %s): give more characters",
			pg_where(pg), prefix, pg_text(&rows, 0, 0), pg_text(&rows, 1, 0));
	if (r == 0)
		snprintf(ret_id, PG_RUN_ID_SIZE, "%s", pg_text(&rows, 0, 0));
	pg_rows_finish(&rows);
	return r;
}

// For ended recordings only: running ones, and those whose recorder died, are marked incomplete anyway.
static int64_t count_gone(const struct run *run)
{
	int64_t n_reported = 0;
	for (size_t i = 0; i < run->n_segments; i++) {
		if (!run->segments[i].complete || !value_ok(run->segments[i].samples))
			return 0;
		n_reported += run->segments[i].samples;
	}
	return n_reported > (int64_t)run->n ? n_reported - (int64_t)run->n : 0;
}

int pg_run_load_from(const char *url, const char *prefix, struct run *ret_run, struct wattle_error *reterr)
{
	static const struct run_extent everything = {0};
	struct pg *pg = NULL;
	struct pg_loader *loader = NULL;
	char id[PG_RUN_ID_SIZE];
	int r = pg_open(url, &pg, reterr);
	if (r == 0)
		r = pg_store_check(pg, reterr);
	if (r == 0)
		r = pg_run_find(pg, prefix, id, reterr);
	if (r == 0)
		r = pg_loader_open(pg, &loader, reterr);
	if (r == 0)
		r = pg_run_load(loader, id, &everything, ret_run, reterr);
	if (r == 0)
		ret_run->n_gone = count_gone(ret_run);
	pg_loader_close(loader);
	pg_close(pg);
	return r;
}
