#include "store/follow.h"

#include "base/search.h"
#include "base/util.h"
#include "store/run_read.h"
#include "store/sql.h"

#include <errno.h>
#include <stdio.h>

void live_init(struct live *live, const char *path, const char *name, bool is_metric)
{
	*live = (struct live){
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

void live_finish(struct live *live)
{
	free(live->steps);
	free(live->done);
	*live = (struct live){0};
}

void live_forget(struct live *live, int64_t before_ns)
{
	size_t n = 0;
	while (n < live->n_steps && live->steps[n].t_ns < before_ns)
		n++;
	if (n == 0) // also the case without an array
		return;
	live->n_steps -= n;
	memmove(live->steps, live->steps + n, live->n_steps * sizeof(*live->steps));
}

static int add_step(struct live *live, int64_t t_ns, double value)
{
	t_ns -= live->shift_ns;
	if (t_ns <= live->known_ns)
		return 0;
	struct live_step *steps = array_with_room(live->steps, live->n_steps, &live->steps_room, sizeof(*steps), 1024);
	if (steps == NULL)
		return -ENOMEM;
	live->steps = steps;
	steps[live->n_steps++] = (struct live_step){t_ns, value};
	live->newest_ns = t_ns > live->newest_ns ? t_ns : live->newest_ns;
	return 0;
}

/* ---- tables ---- */

static int prepare(const struct live *live, sqlite3 *db, const char *select, int64_t from, sqlite3_stmt **ret_statement)
{
	int r = sqlite3_prepare_v2(db, select, -1, ret_statement, NULL);
	if (r != SQLITE_OK)
		return r;
	sqlite3_bind_int64(*ret_statement, 1, from);
	sqlite3_bind_text(*ret_statement, 2, live->name, -1, SQLITE_STATIC);
	return SQLITE_OK;
}

static bool is_done(const struct live *live, int64_t id)
{
	size_t at = search_i64(live->done, live->n_done, id);
	return at < live->n_done && live->done[at] == id;
}

/* Ids are assigned when spans begin; the row of an open span is replaced when the span ends. So rows from the first open span
 * on are read again, and the ended ones among them are remembered. */
static int read_spans(struct live *live, sqlite3 *db)
{
	static const char select[] =
		"SELECT id, end_ns, close = 'ended' FROM span WHERE id >= ?1 AND name = ?2 ORDER BY id";
	int64_t *done = NULL, first_open = INT64_MAX;
	size_t n_done = 0, room = 0;
	int64_t last_id = sql_read_i64(db, "SELECT max(id) FROM span", 0);
	sqlite3_stmt *s = NULL;
	int r = prepare(live, db, select, live->next_id, &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		int64_t id = sql_i64(s, 0), end_ns = sql_i64(s, 1);
		r = SQLITE_OK;
		if (!value_ok(end_ns)) {
			first_open = id < first_open ? id : first_open;
			continue;
		}
		// A span that was ended by its thread's exit or by an outer span did not complete its block.
		if (sql_i64(s, 2) == 1 && !is_done(live, id) && add_step(live, end_ns, 1) < 0)
			r = SQLITE_NOMEM;
		int64_t *larger = array_with_room(done, n_done, &room, sizeof(*done), 64);
		if (larger == NULL) {
			r = SQLITE_NOMEM;
			break;
		}
		done = larger;
		done[n_done++] = id;
	}
	sqlite3_finalize(s);
	free(live->done);
	live->done = done;
	live->n_done = n_done;
	live->done_room = room;
	live->next_id = first_open < INT64_MAX ? first_open : last_id + 1;
	live->last_id = last_id;
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int read_metrics(struct live *live, sqlite3 *db)
{
	static const char select[] =
		"SELECT rowid, t_ns, value FROM user_metric WHERE rowid > ?1 AND name = ?2 ORDER BY rowid";
	int64_t last_row = sql_read_i64(db, "SELECT max(rowid) FROM user_metric", live->last_row);
	sqlite3_stmt *s = NULL;
	int r = prepare(live, db, select, live->last_row, &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW)
		r = add_step(live, sql_i64(s, 1), sql_double(s, 2)) < 0 ? SQLITE_NOMEM : SQLITE_OK;
	sqlite3_finalize(s);
	live->last_row = last_row;
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* ---- the spool ---- */

static int take_name(void *data, uint32_t name, const char *bytes, size_t length)
{
	struct live *live = data;
	if (strlen(live->name) == length && memcmp(live->name, bytes, length) == 0)
		live->spool_name = name;
	return 0;
}

static int take_span(void *data, const struct spool_span *row)
{
	struct live *live = data;
	bool is_step = !live->is_metric && row->name == live->spool_name && row->close == SPAN_ENDED;
	return is_step ? add_step(live, row->end_ns, 1) : 0;
}

static int take_metric(void *data, const struct spool_metric *row)
{
	struct live *live = data;
	bool is_step = live->is_metric && row->name == live->spool_name;
	return is_step ? add_step(live, row->t_ns, row->value) : 0;
}

/* ---- update ---- */

// A new recorder started, perhaps on an existing file: steps of earlier segments do not count.
static void enter_segment(struct live *live, sqlite3 *db, const struct follow_segment *segment)
{
	bool is_new = live->segment == 0;
	live->segment = segment->id;
	live->n_done = 0;
	live->spool_at = 0;
	live->spool_name = SPOOL_NAMES;
	live->known_ns = live->newest_ns;
	live->shift_ns = segment->shift_ns;
	if (!is_new) // spans left open in the previous segment never end
		live->next_id = live->last_id + 1;
	if (!is_new || segment->id == 1)
		return;
	live->next_id = sql_read_i64(db, "SELECT max(id) FROM span", 0) + 1;
	live->last_row = sql_read_i64(db, "SELECT max(rowid) FROM user_metric", 0);
}

static int look(void *data, sqlite3 *db)
{
	struct live *live = data;
	struct follow_segment segment;
	int r = follow_last_segment(db, &segment);
	if (r != SQLITE_OK || segment.id == 0)
		return r;
	if (segment.id != live->segment)
		enter_segment(live, db, &segment);
	live->is_over = segment.is_merging;
	if (live->is_over)
		return SQLITE_OK;
	int64_t stored_ns = sql_read_i64(db, "SELECT max(t_ns) FROM sample", VALUE_MISSING);
	const struct spool_visitor visitor = {.name = take_name, .span = take_span, .metric = take_metric, .data = live};
	r = live->is_metric ? read_metrics(live, db) : read_spans(live, db);
	if (r == SQLITE_OK)
		r = follow_spool(live->path, db, live->segment, &live->spool_at, &visitor);
	if (r == SQLITE_OK)
		live->stored_ns = value_ok(stored_ns) ? stored_ns - live->shift_ns : VALUE_MISSING;
	return r;
}

int live_look(struct live *live, struct wattle_error *reterr)
{
	int r = follow_look(live->path, look, live, reterr);
	if (r == 0 &&
		sort_rows(live->steps, sizeof(*live->steps), live->n_steps, offsetof(struct live_step, t_ns),
			SORT_NO_ID) < 0)
		r = error_set(reterr, -ENOMEM, "out of memory");
	return r;
}

void live_names(const char *path, bool of_metrics, char *out, size_t size)
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
