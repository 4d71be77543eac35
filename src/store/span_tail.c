#include "store/follow.h"

#include "base/search.h"
#include "base/utf8.h"
#include "base/util.h"
#include "store/sql.h"

void span_tail_init(struct span_tail *tail, const char *path)
{
	*tail = (struct span_tail){.path = path, .stored_ns = VALUE_MISSING};
}

void span_tail_finish(struct span_tail *tail)
{
	free(tail->spans);
	*tail = (struct span_tail){0};
}

/* ---- spans ---- */

static void copy_name(sqlite3_stmt *s, int column, char *out, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	if (text == NULL)
		text = "";
	size_t n = strlen(text);
	if (n >= size) {
		n = size - 1;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(out, text, n);
	out[n] = '\0';
}

// Removes the spans that have ended since the previous update. A row is replaced when its span ends.
static int drop_ended(struct span_tail *tail, sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	size_t n = 0;
	int r = sqlite3_prepare_v2(db, "SELECT end_ns IS NULL FROM span WHERE id = ?", -1, &s, NULL);
	for (size_t i = 0; r == SQLITE_OK && i < tail->n_spans; i++) {
		sqlite3_bind_int64(s, 1, tail->spans[i].id);
		bool runs = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) != 0;
		if (runs && n != i)
			tail->spans[n] = tail->spans[i];
		n += runs;
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
	if (r == SQLITE_OK)
		tail->n_spans = n;
	return r;
}

static int add_span(struct span_tail *tail, sqlite3_stmt *s)
{
	struct tail_span *spans = array_reserve(tail->spans, tail->n_spans, &tail->capacity, sizeof(*spans), 64);
	if (spans == NULL)
		return SQLITE_NOMEM;
	tail->spans = spans;
	struct tail_span *span = &spans[tail->n_spans++];
	*span = (struct tail_span){
		.id = sql_i64(s, 0),
		.parent = sql_i64(s, 1),
		.pid = sql_i64(s, 2),
		.tid = sql_i64(s, 3),
		.begin_ns = sql_i64(s, 4) - tail->segment.shift_ns,
	};
	copy_name(s, 5, span->name, sizeof(span->name));
	return SQLITE_OK;
}

/* Adds the spans that began since. Ids are assigned when spans begin, and open spans are stored at each flush: new spans have
 * larger ids than all before. Spans beyond the capacity are read again at each update, until others end. */
static int add_begun(struct span_tail *tail, sqlite3 *db)
{
	static const char select[] = "SELECT id, parent, pid, tid, begin_ns, name FROM span "
				     "WHERE id > ?1 AND end_ns IS NULL AND begin_ns >= ?2 ORDER BY id";
	sqlite3_stmt *s = NULL;
	int64_t last_id = sql_read_i64(db, "SELECT max(id) FROM span", 0);
	int64_t more = 0;
	size_t n_before = tail->n_spans;
	int r = sqlite3_prepare_v2(db, select, -1, &s, NULL);
	if (r == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, tail->last_id);
		sqlite3_bind_int64(s, 2, tail->segment.start_ns + tail->segment.shift_ns);
	}
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		bool is_full = tail->n_spans == SPAN_TAIL_SPANS_MAX;
		r = is_full ? SQLITE_OK : add_span(tail, s);
		more += is_full;
	}
	sqlite3_finalize(s);
	if (r != SQLITE_DONE) {
		tail->n_spans = n_before; // spans beyond the capacity are read again at the next update
		return r;
	}
	if (tail->more > 0)
		tail->spool_at = 0; // the spool may hold ends of the spans that were not kept
	tail->more = more;
	tail->last_id = more > 0 ? tail->spans[tail->n_spans - 1].id : last_id;
	return SQLITE_OK;
}

/* ---- spool: the ends of spans that the tables show as open ---- */

static bool is_span_before(const void *item, const void *key)
{
	return ((const struct tail_span *)item)->id < *(const int64_t *)key;
}

static int take_span(void *data, const struct spool_span *row)
{
	struct span_tail *tail = data;
	size_t at = search_first(tail->spans, tail->n_spans, sizeof(*tail->spans), &row->id, is_span_before);
	if (at == tail->n_spans || tail->spans[at].id != row->id || !value_ok(row->end_ns))
		return 0;
	memmove(&tail->spans[at], &tail->spans[at + 1], (tail->n_spans - at - 1) * sizeof(*tail->spans));
	tail->n_spans--;
	return 0;
}

/* ---- update ---- */

static int read_rows(void *data, sqlite3 *db)
{
	struct span_tail *tail = data;
	struct follow_segment segment;
	int r = follow_last_segment(db, &segment);
	if (r != SQLITE_OK)
		return r;
	if (segment.id != tail->segment.id) { // spans left open in an earlier segment never end
		tail->n_spans = 0;
		tail->more = 0;
		tail->spool_at = 0;
	}
	tail->segment = segment;
	if (segment.id == 0)
		return SQLITE_OK;
	int64_t stored_ns = sql_read_i64(db, "SELECT max(t_ns) FROM sample", VALUE_MISSING);
	bool is_of_it = value_ok(stored_ns) && stored_ns - segment.shift_ns >= segment.start_ns;
	tail->stored_ns = is_of_it ? stored_ns - segment.shift_ns : VALUE_MISSING;
	r = drop_ended(tail, db);
	if (r == SQLITE_OK)
		r = add_begun(tail, db);
	const struct spool_callbacks callbacks = {.span = take_span, .data = tail};
	if (r == SQLITE_OK) // ignore an unreadable spool
		(void)follow_spool(tail->path, db, tail->segment.id, &tail->spool_at, &callbacks);
	return r;
}

int span_tail_poll(struct span_tail *tail, struct wattle_error *reterr)
{
	return follow_read(tail->path, read_rows, tail, reterr);
}

int64_t span_tail_nth_sample(const struct span_tail *tail, int64_t t_ns, int64_t n)
{
	sqlite3 *db;
	sqlite3_stmt *s = NULL;
	int64_t found_ns = VALUE_MISSING;
	if (sql_open_reader(tail->path, &db, NULL) == 0 &&
		sqlite3_prepare_v2(db,
			"SELECT max(t_ns) FROM (SELECT t_ns FROM sample WHERE t_ns > ?1 ORDER BY t_ns LIMIT ?2)", -1,
			&s, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, t_ns);
		sqlite3_bind_int64(s, 2, n);
		if (sqlite3_step(s) == SQLITE_ROW)
			found_ns = sql_i64(s, 0);
	}
	sqlite3_finalize(s);
	sqlite3_close(db);
	return value_ok(found_ns) ? found_ns : t_ns;
}
