#include "store/follow.h"

#include "base/search.h"
#include "base/util.h"
#include "store/run_read.h"
#include "store/sql.h"

#include <errno.h>
#include <stdio.h>

void step_tail_init(struct step_tail *tail, const char *path, const char *name, bool is_metric)
{
	*tail = (struct step_tail){
		.path = path,
		.name = name,
		.is_metric = is_metric,
		.next_id = 1,
		.spool_name = SPOOL_NAMES,
		.stored_ns = VALUE_MISSING,
		.newest_ns = INT64_MIN,
		.known_ns = INT64_MIN,
	};
}

void step_tail_finish(struct step_tail *tail)
{
	free(tail->steps);
	free(tail->done);
	*tail = (struct step_tail){0};
}

void step_tail_drop(struct step_tail *tail, int64_t before_ns)
{
	size_t n = 0;
	while (n < tail->n_steps && tail->steps[n].t_ns < before_ns)
		n++;
	if (n == 0) // also the case without an array
		return;
	tail->n_steps -= n;
	memmove(tail->steps, tail->steps + n, tail->n_steps * sizeof(*tail->steps));
}

static int add_step(struct step_tail *tail, int64_t t_ns, double value)
{
	t_ns -= tail->shift_ns;
	if (t_ns <= tail->known_ns)
		return 0;
	struct tail_step *steps = array_reserve(tail->steps, tail->n_steps, &tail->steps_capacity, sizeof(*steps),
		1024);
	if (steps == NULL)
		return -ENOMEM;
	tail->steps = steps;
	steps[tail->n_steps++] = (struct tail_step){t_ns, value};
	tail->newest_ns = t_ns > tail->newest_ns ? t_ns : tail->newest_ns;
	return 0;
}

/* ---- tables ---- */

static int prepare(const struct step_tail *tail, sqlite3 *db, const char *select, int64_t from,
	sqlite3_stmt **ret_statement)
{
	int r = sqlite3_prepare_v2(db, select, -1, ret_statement, NULL);
	if (r != SQLITE_OK)
		return r;
	sqlite3_bind_int64(*ret_statement, 1, from);
	sqlite3_bind_text(*ret_statement, 2, tail->name, -1, SQLITE_STATIC);
	return SQLITE_OK;
}

static bool is_done(const struct step_tail *tail, int64_t id)
{
	size_t at = search_i64(tail->done, tail->n_done, id);
	return at < tail->n_done && tail->done[at] == id;
}

/* Ids are assigned when spans begin; the row of an open span is replaced when the span ends. So rows from the first open span
 * on are read again, and the ended ones among them are remembered. */
static int read_spans(struct step_tail *tail, sqlite3 *db)
{
	static const char select[] =
		"SELECT id, end_ns, close = 'ended' FROM span WHERE id >= ?1 AND name = ?2 ORDER BY id";
	int64_t *done = NULL, first_open = INT64_MAX;
	size_t n_done = 0, capacity = 0;
	int64_t last_id = sql_read_i64(db, "SELECT max(id) FROM span", 0);
	sqlite3_stmt *s = NULL;
	int r = prepare(tail, db, select, tail->next_id, &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		int64_t id = sql_i64(s, 0), end_ns = sql_i64(s, 1);
		r = SQLITE_OK;
		if (!value_ok(end_ns)) {
			first_open = id < first_open ? id : first_open;
			continue;
		}
		// A span that was ended by its thread's exit or by an outer span did not complete its block.
		if (sql_i64(s, 2) == 1 && !is_done(tail, id) && add_step(tail, end_ns, 1) < 0)
			r = SQLITE_NOMEM;
		int64_t *larger = array_reserve(done, n_done, &capacity, sizeof(*done), 64);
		if (larger == NULL) {
			r = SQLITE_NOMEM;
			break;
		}
		done = larger;
		done[n_done++] = id;
	}
	sqlite3_finalize(s);
	free(tail->done);
	tail->done = done;
	tail->n_done = n_done;
	tail->done_capacity = capacity;
	tail->next_id = first_open < INT64_MAX ? first_open : last_id + 1;
	tail->last_id = last_id;
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int read_metrics(struct step_tail *tail, sqlite3 *db)
{
	static const char select[] =
		"SELECT rowid, t_ns, value FROM user_metric WHERE rowid > ?1 AND name = ?2 ORDER BY rowid";
	int64_t last_row = sql_read_i64(db, "SELECT max(rowid) FROM user_metric", tail->last_row);
	sqlite3_stmt *s = NULL;
	int r = prepare(tail, db, select, tail->last_row, &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW)
		r = add_step(tail, sql_i64(s, 1), sql_double(s, 2)) < 0 ? SQLITE_NOMEM : SQLITE_OK;
	sqlite3_finalize(s);
	tail->last_row = last_row;
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* ---- the spool ---- */

static int take_name(void *data, uint32_t name, const char *bytes, size_t length)
{
	struct step_tail *tail = data;
	if (strlen(tail->name) == length && memcmp(tail->name, bytes, length) == 0)
		tail->spool_name = name;
	return 0;
}

static int take_span(void *data, const struct spool_span *row)
{
	struct step_tail *tail = data;
	bool is_step = !tail->is_metric && row->name == tail->spool_name && row->close == SPAN_ENDED;
	return is_step ? add_step(tail, row->end_ns, 1) : 0;
}

static int take_metric(void *data, const struct spool_metric *row)
{
	struct step_tail *tail = data;
	bool is_step = tail->is_metric && row->name == tail->spool_name;
	return is_step ? add_step(tail, row->t_ns, row->value) : 0;
}

/* ---- update ---- */

// A new recorder started, perhaps on an existing file: steps of earlier segments do not count.
static void enter_segment(struct step_tail *tail, sqlite3 *db, const struct follow_segment *segment)
{
	bool is_new = tail->segment == 0;
	tail->segment = segment->id;
	tail->n_done = 0;
	tail->spool_at = 0;
	tail->spool_name = SPOOL_NAMES;
	tail->known_ns = tail->newest_ns;
	tail->shift_ns = segment->shift_ns;
	if (!is_new) // spans left open in the previous segment never end
		tail->next_id = tail->last_id + 1;
	if (!is_new || segment->id == 1)
		return;
	tail->next_id = sql_read_i64(db, "SELECT max(id) FROM span", 0) + 1;
	tail->last_row = sql_read_i64(db, "SELECT max(rowid) FROM user_metric", 0);
}

static int read_rows(void *data, sqlite3 *db)
{
	struct step_tail *tail = data;
	struct follow_segment segment;
	int r = follow_last_segment(db, &segment);
	if (r != SQLITE_OK || segment.id == 0)
		return r;
	if (segment.id != tail->segment)
		enter_segment(tail, db, &segment);
	tail->is_over = segment.is_merging;
	if (tail->is_over)
		return SQLITE_OK;
	int64_t stored_ns = sql_read_i64(db, "SELECT max(t_ns) FROM sample", VALUE_MISSING);
	const struct spool_callbacks callbacks = {.name = take_name,
		.span = take_span,
		.metric = take_metric,
		.data = tail};
	r = tail->is_metric ? read_metrics(tail, db) : read_spans(tail, db);
	if (r == SQLITE_OK)
		r = follow_spool(tail->path, db, tail->segment, &tail->spool_at, &callbacks);
	if (r == SQLITE_OK)
		tail->stored_ns = value_ok(stored_ns) ? stored_ns - tail->shift_ns : VALUE_MISSING;
	return r;
}

int step_tail_poll(struct step_tail *tail, struct wattle_error *reterr)
{
	int r = follow_read(tail->path, read_rows, tail, reterr);
	if (r == 0 &&
		sort_rows(tail->steps, sizeof(*tail->steps), tail->n_steps, offsetof(struct tail_step, t_ns),
			SORT_NO_ID) < 0)
		r = error_set(reterr, -ENOMEM, "out of memory");
	return r;
}

void step_tail_names(const char *path, bool of_metrics, char *out, size_t size)
{
	static const char spans[] = "SELECT name FROM span GROUP BY name ORDER BY count(*) DESC, name LIMIT 12",
			  metrics[] =
				  "SELECT name FROM user_metric GROUP BY name ORDER BY count(*) DESC, name LIMIT 12";
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;
	size_t n = 0;
	out[0] = '\0';
	if (sql_open_reader(path, &db, NULL) == 0 &&
		sqlite3_prepare_v2(db, of_metrics ? metrics : spans, -1, &s, NULL) == SQLITE_OK)
		while (n < size && sqlite3_step(s) == SQLITE_ROW) {
			int length = snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "",
				(const char *)sqlite3_column_text(s, 0));
			n += length > 0 ? (size_t)length : 0;
		}
	sqlite3_finalize(s);
	sqlite3_close(db);
}
