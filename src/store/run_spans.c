#include "store/run_write.h"

#include <errno.h>
#include <unistd.h>

/* An existing id belongs to a span that was open then. A batch is repeated after a failure of unknown extent: INSERT OR REPLACE
 * makes that safe. */
static const char *const sources[RUN_SPANS_STATEMENTS] = {
	[RUN_SPANS_SPAN] =
		("INSERT OR REPLACE INTO span (id, parent, pid, tid, name, begin_ns, end_ns, cpu_ns, category, "
		 "kind, close) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
	[RUN_SPANS_METRIC] = "INSERT INTO user_metric (t_ns, name, value, span, pid, tid) VALUES (?, ?, ?, ?, ?, ?)",
	[RUN_SPANS_MARK] =
		"INSERT INTO event (t_ns, kind, reason, detail, text) VALUES (?1, 'mark', 'program', ?2, ?2)",
	[RUN_SPANS_DONE] = "UPDATE segment SET spool_bytes = ?2 WHERE id = ?1",
};

// Cache size while the spool is converted to rows, in KiB; the writer otherwise uses little memory.
static const char more_cache[] = "PRAGMA cache_size=-16384", usual_cache[] = "PRAGMA cache_size=-512";

/* ---- rows ---- */

/* Values as stored in the tables: names as text, times and ids of the file. */
static int insert_span(struct run_spans *spans, const struct spool_span *row, const char *name, const char *category)
{
	sqlite3_stmt *insert = spans->statements[RUN_SPANS_SPAN];
	sqlite3_bind_int64(insert, 1, row->id);
	sql_bind_i64(insert, 2, row->parent);
	sqlite3_bind_int64(insert, 3, row->pid);
	sqlite3_bind_int64(insert, 4, row->tid);
	sql_bind_text(insert, 5, name);
	sqlite3_bind_int64(insert, 6, row->begin_ns);
	sql_bind_i64(insert, 7, row->end_ns);
	sql_bind_i64(insert, 8, row->cpu_ns);
	sql_bind_text(insert, 9, category);
	sql_bind_text(insert, 10, span_kind_name((enum span_kind)row->kind));
	sql_bind_text(insert, 11, span_close_name((enum span_close)row->close));
	return sql_run(insert);
}

static int insert_metric(struct run_spans *spans, const struct spool_metric *row, const char *name)
{
	sqlite3_stmt *insert = spans->statements[RUN_SPANS_METRIC];
	sqlite3_bind_int64(insert, 1, row->t_ns);
	sql_bind_text(insert, 2, name);
	sqlite3_bind_double(insert, 3, row->value);
	sql_bind_i64(insert, 4, row->span);
	sqlite3_bind_int64(insert, 5, row->pid);
	sqlite3_bind_int64(insert, 6, row->tid);
	return sql_run(insert);
}

static int insert_mark(struct run_spans *spans, int64_t t_ns, const char *name)
{
	sqlite3_stmt *insert = spans->statements[RUN_SPANS_MARK];
	sqlite3_bind_int64(insert, 1, t_ns);
	sql_bind_text(insert, 2, name);
	return sql_run(insert);
}

/* ---- directly into the tables ---- */

static int64_t plus(int64_t value, int64_t offset)
{
	return value_ok(value) ? value + offset : VALUE_MISSING;
}

static const char *name_of(const struct store_spans *rows, uint32_t name)
{
	return name < rows->n_names ? rows->names[name] : NULL;
}

static int write_span(struct run_spans *spans, const struct store_spans *rows, const struct span_row *row)
{
	const struct spool_span as_stored = {
		.kind = row->kind,
		.close = row->close,
		.pid = row->pid,
		.tid = row->tid,
		.id = row->id + spans->id_offset,
		.parent = plus(row->parent, spans->id_offset),
		.begin_ns = plus(row->begin_ns, spans->shift_ns),
		.end_ns = plus(row->end_ns, spans->shift_ns),
		.cpu_ns = row->cpu_ns,
	};
	return insert_span(spans, &as_stored, name_of(rows, row->name), name_of(rows, row->category));
}

static int write_metric(struct run_spans *spans, const struct store_spans *rows, const struct span_metric_row *row)
{
	const struct spool_metric as_stored = {
		.pid = row->pid,
		.tid = row->tid,
		.t_ns = plus(row->t_ns, spans->shift_ns),
		.span = plus(row->span, spans->id_offset),
		.value = row->value,
	};
	return insert_metric(spans, &as_stored, name_of(rows, row->name));
}

int run_spans_write(struct run_spans *spans, const struct store_spans *rows)
{
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_open; i++)
		r = write_span(spans, rows, &rows->open[i]);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_ended; i++)
		r = write_span(spans, rows, &rows->ended[i]);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_metrics; i++)
		r = write_metric(spans, rows, &rows->metrics[i]);
	for (size_t i = 0; r == SQLITE_OK && i < rows->n_marks; i++)
		r = insert_mark(spans, plus(rows->marks[i].t_ns, spans->shift_ns), name_of(rows, rows->marks[i].name));
	return r;
}

int run_spans_spill(struct run_spans *spans, const struct store_spans *rows)
{
	int r = spans->spool.fd < 0 ? spool_make(&spans->spool, spans->run_path, spans->run_id, spans->segment) : 0;
	return r < 0 ? r : spool_append(&spans->spool, rows, spans->id_offset, spans->shift_ns);
}

/* ---- from the spool ---- */

struct merging {
	struct run_spans *spans;
	char **names; // owned, as is each name
	int64_t segment;
	int64_t reached, committed;    // bytes of the spool read: including this transaction; before it
	int result;                    // SQLite result code
	bool (*is_enough)(void *data); // NULL: never stops early
	void *data;
	bool is_cut;
};

enum { MERGE_BYTES = 8 << 20 }; // bytes per transaction

static const char *gathered_name(const struct merging *g, uint32_t name)
{
	return name < SPOOL_NAMES ? g->names[name] : NULL;
}

static int take_name(void *data, uint32_t name, const char *bytes, size_t length)
{
	struct merging *g = data;
	if (name >= SPOOL_NAMES)
		return 0;
	free(g->names[name]);
	g->names[name] = strndup(bytes, length);
	return g->names[name] != NULL ? 0 : -ENOMEM;
}

static int keep(struct merging *g, int result)
{
	g->result = result;
	return result != SQLITE_OK;
}

static int take_span(void *data, const struct spool_span *row)
{
	struct merging *g = data;
	const char *name = gathered_name(g, row->name);
	if (name == NULL || row->kind >= SPAN_KINDS || row->close >= SPAN_CLOSES)
		return 0; // damaged
	return keep(g, insert_span(g->spans, row, name, gathered_name(g, row->category)));
}

static int take_metric(void *data, const struct spool_metric *row)
{
	struct merging *g = data;
	const char *name = gathered_name(g, row->name);
	return name != NULL ? keep(g, insert_metric(g->spans, row, name)) : 0;
}

static int take_mark(void *data, const struct spool_mark *row)
{
	struct merging *g = data;
	const char *name = gathered_name(g, row->name);
	return name != NULL ? keep(g, insert_mark(g->spans, row->t_ns, name)) : 0;
}

// The number of spool bytes done is stored in the same transaction: a kill at any moment neither loses nor duplicates rows.
static int commit(struct merging *g)
{
	sqlite3_stmt *done = g->spans->statements[RUN_SPANS_DONE];
	sqlite3_bind_int64(done, 1, g->segment);
	sqlite3_bind_int64(done, 2, g->reached);
	int r = sql_run(done);
	if (r == SQLITE_OK)
		r = sql_exec(g->spans->db, "COMMIT");
	g->committed = g->reached;
	return keep(g, r);
}

static int take_chunk(void *data, int64_t offset)
{
	struct merging *g = data;
	g->reached = offset;
	g->is_cut = g->is_enough != NULL && g->is_enough(g->data);
	if (g->is_cut)
		return -ECANCELED; // the rest stays in the spool
	if (g->reached - g->committed < MERGE_BYTES)
		return 0;
	int r = commit(g);
	return r != 0 ? r : keep(g, sql_exec(g->spans->db, "BEGIN IMMEDIATE"));
}

static int64_t bytes_done(const struct run_spans *spans, int64_t segment, int fd)
{
	sqlite3_stmt *s = NULL;
	int64_t bytes = 0;
	if (sqlite3_prepare_v2(spans->db, "SELECT coalesce(spool_bytes, 0) FROM segment WHERE id = ?", -1, &s, NULL) ==
		SQLITE_OK) {
		sqlite3_bind_int64(s, 1, segment);
		bytes = sqlite3_step(s) == SQLITE_ROW ? spool_bytes_done(fd, sql_i64(s, 0))
						      : INT64_MAX; // no such segment: the spool is not from this file
	}
	sqlite3_finalize(s);
	return bytes;
}

static int gather(struct run_spans *spans, int fd, int64_t segment, const struct store_footer *footer, bool *ret_is_cut)
{
	struct merging g = {.spans = spans, .segment = segment, .committed = bytes_done(spans, segment, fd)};
	g.reached = g.committed;
	if (footer != NULL) {
		g.is_enough = footer->must_hurry;
		g.data = footer->must_hurry_data;
	}
	g.names = calloc_array(SPOOL_NAMES, sizeof(*g.names));
	if (g.names == NULL)
		return SQLITE_NOMEM;
	const struct spool_callbacks callbacks = {take_name, take_span, take_metric, take_mark, take_chunk, &g};
	sql_exec(spans->db, more_cache);
	g.result = sql_exec(spans->db, "BEGIN IMMEDIATE");
	if (g.result == SQLITE_OK) {
		int r = spool_read(fd, g.committed, &callbacks);
		if (r < 0 && !g.is_cut)
			g.result = r == -ENOMEM ? SQLITE_NOMEM : SQLITE_IOERR;
		if (g.result == SQLITE_OK)
			commit(&g);
	}
	sql_rollback(spans->db);
	sql_exec(spans->db, usual_cache);
	for (size_t i = 0; i < SPOOL_NAMES; i++)
		free(g.names[i]);
	free(g.names);
	*ret_is_cut = g.is_cut;
	return g.result;
}

int run_spans_merge_spool(struct run_spans *spans, const struct store_footer *footer)
{
	if (spans->spool.fd < 0)
		return SQLITE_OK;
	bool is_cut;
	int r = gather(spans, spans->spool.fd, spans->segment, footer, &is_cut);
	if (r == SQLITE_OK)
		spool_close(&spans->spool, !is_cut);
	return r;
}

// Merges the spool that a dead recorder left.
static int merge_leftover(struct run_spans *spans)
{
	struct spool_header header;
	int fd = spool_open_reader(spans->run_path, spans->run_id, &header);
	if (fd < 0)
		return SQLITE_OK;
	bool is_cut;
	int r = gather(spans, fd, header.segment, NULL, &is_cut);
	close(fd);
	char path[OUTPUT_FILE_PATH_SIZE + 8];
	spool_path(spans->run_path, path, sizeof(path));
	if (r == SQLITE_OK)
		unlink(path);
	return r;
}

/* ---- open and close ---- */

int run_spans_open(struct run_spans *spans, sqlite3 *db, const char *run_path, int64_t segment, int64_t shift_ns)
{
	*spans = (struct run_spans){.db = db,
		.run_path = run_path,
		.segment = segment,
		.shift_ns = shift_ns,
		.spool.fd = -1};
	sql_read_run_id(db, spans->run_id, sizeof(spans->run_id));
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && i < RUN_SPANS_STATEMENTS; i++)
		r = sqlite3_prepare_v3(db, sources[i], -1, SQLITE_PREPARE_PERSISTENT, &spans->statements[i], NULL);
	if (r == SQLITE_OK)
		r = merge_leftover(spans);
	spans->id_offset = sql_read_i64(db, "SELECT max(id) FROM span", 0);
	return r;
}

void run_spans_close(struct run_spans *spans)
{
	for (size_t i = 0; i < RUN_SPANS_STATEMENTS; i++)
		sqlite3_finalize(spans->statements[i]);
	memset(spans->statements, 0, sizeof(spans->statements));
	if (spans->db != NULL)
		spool_close(&spans->spool, false);
}
