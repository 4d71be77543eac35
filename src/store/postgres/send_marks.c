#include "store/postgres/send.h"

#include <errno.h>
#include <inttypes.h>

const char send_processes_name[] = "process", send_report_name[] = "recording";

/* ---- read ---- */

// NULL: a table that only a later wattle sends.
static struct source_mark *mark_named(struct send *send, const char *name)
{
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (strcmp(name, layout_names[i].name) == 0)
			return &send->marks.tables[i];
	if (strcmp(name, send_processes_name) == 0)
		return &send->processes;
	return strcmp(name, send_report_name) == 0 ? &send->report : NULL;
}

static struct source_mark read_mark(const struct pg_rows *rows, size_t row)
{
	int64_t n = pg_i64(rows, row, 2);
	return (struct source_mark){pg_i64(rows, row, 1), value_ok(n) ? n : 0};
}

static int take_mark(struct send *send, const struct pg_rows *rows, size_t row)
{
	struct source_mark *mark = mark_named(send, pg_text(rows, row, 0));
	if (mark == NULL)
		return 0;
	*mark = read_mark(rows, row);
	const char *ids = pg_text(rows, row, 3);
	if (ids == NULL || mark != &send->marks.tables[LAYOUT_SPAN])
		return 0;
	free(send->span_ids);
	send->span_ids = strdup(ids);
	return send->span_ids == NULL ? -ENOMEM : ranges_parse(ids, &send->marks.spans);
}

int send_take_marks(struct send *send, const struct pg_rows *rows)
{
	static const struct source_mark none = {VALUE_MISSING, 0};
	source_marks_finish(&send->marks);
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		send->marks.tables[i] = none;
	send->processes = send->report = none;
	free(send->span_ids);
	send->span_ids = NULL;
	send->is_checked = false;
	int r = 0;
	for (size_t i = 0; r == 0 && i < rows->n; i++)
		r = take_mark(send, rows, i);
	return r;
}

bool send_marks_hold(struct send *send, const struct pg_rows *rows)
{
	size_t known = (size_t)value_ok(send->processes.mark) + (size_t)value_ok(send->report.mark), seen = 0;
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		known += value_ok(send->marks.tables[i].mark) || send->marks.tables[i].n > 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct source_mark *mark = mark_named(send, pg_text(rows, i, 0)), now = read_mark(rows, i);
		if (mark == NULL)
			continue;
		if (mark->mark != now.mark || mark->n != now.n)
			return false;
		const char *ids = pg_text(rows, i, 3);
		if (mark == &send->marks.tables[LAYOUT_SPAN] &&
			strcmp(ids != NULL ? ids : "", send->span_ids != NULL ? send->span_ids : "") != 0)
			return false;
		seen++;
	}
	return seen == known;
}

/* ---- written ---- */

static void write_mark(struct buf *out, const char *name, const struct source_mark *mark, const char *ids)
{
	buf_printf(out, "%s{\"table_name\":\"%s\",\"n\":%" PRId64, out->size > 1 ? "," : "", name, mark->n);
	if (value_ok(mark->mark))
		buf_printf(out, ",\"mark\":%" PRId64, mark->mark);
	if (ids != NULL)
		buf_printf(out, ",\"ids\":\"%s\"", ids);
	buf_char(out, '}');
}

bool send_is_new(const struct send *send, size_t table)
{
	return send->source.tables[table].rows.n_rows > 0;
}

static int send_marks(struct send *send, const struct buf *json, struct wattle_error *reterr)
{
	const char *const values[] = {send->source.run_id, json->data};
	return json->failed != 0 ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
				 : pg_query(send->pg, PG_CALL_MARK, values, 2, NULL, reterr);
}

int send_mark_rows(struct send *send, char **ret_ids, struct wattle_error *reterr)
{
	struct buf ids, json;
	buf_init(&ids, SEND_JSON_CEILING);
	buf_init(&json, SEND_JSON_CEILING);
	if (send_is_new(send, LAYOUT_SPAN))
		ranges_write(&send->source.next.spans, &ids);
	buf_char(&json, '[');
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (send_is_new(send, i))
			write_mark(&json, layout_names[i].name, &send->source.next.tables[i],
				i == LAYOUT_SPAN ? ids.data : NULL);
	buf_char(&json, ']');
	if (ids.failed != 0)
		json.failed = ids.failed;
	int r = send_marks(send, &json, reterr);
	buf_finish(&json);
	if (r == 0 && ids.size > 0)
		*ret_ids = buf_take(&ids);
	buf_finish(&ids);
	return r;
}

int send_mark_one(struct send *send, const char *name, const struct source_mark *mark, struct wattle_error *reterr)
{
	struct buf json;
	buf_init(&json, 4096);
	buf_char(&json, '[');
	write_mark(&json, name, mark, NULL);
	buf_char(&json, ']');
	int r = send_marks(send, &json, reterr);
	buf_finish(&json);
	return r;
}
