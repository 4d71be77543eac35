#include "store/postgres/send_parts.h"

#include <errno.h>
#include <inttypes.h>

const char send_processes_name[] = "process", send_report_name[] = "recording";

/* ---- read ---- */


static int take_mark(struct send *send, const struct pg_rows *rows, size_t row)
{
	const char *name = pg_text(rows, row, 0);
	struct source_mark mark = {pg_i64(rows, row, 1), pg_i64(rows, row, 2)};
	mark.n = value_ok(mark.n) ? mark.n : 0;
	if (strcmp(name, send_processes_name) == 0)
		send->processes = mark;
	if (strcmp(name, send_report_name) == 0)
		send->report = mark;
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (strcmp(name, layout_names[i].name) == 0)
			send->marks.tables[i] = mark;
	const char *ids = pg_text(rows, row, 3);
	if (ids == NULL || strcmp(name, layout_names[LAYOUT_SPAN].name) != 0)
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

static bool is_same(const struct source_mark *mark, const struct pg_rows *rows, size_t row)
{
	return mark->mark == pg_i64(rows, row, 1) && mark->n == (value_ok(pg_i64(rows, row, 2)) ? pg_i64(rows, row, 2) : 0);
}

static const struct source_mark *mark_named(const struct send *send, const char *name)
{
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (strcmp(name, layout_names[i].name) == 0)
			return &send->marks.tables[i];
	return strcmp(name, send_processes_name) == 0 ? &send->processes : &send->report;
}

bool send_marks_hold(const struct send *send, const struct pg_rows *rows)
{
	size_t known = (size_t)value_ok(send->processes.mark) + (size_t)value_ok(send->report.mark);
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		known += value_ok(send->marks.tables[i].mark) || send->marks.tables[i].n > 0;
	for (size_t i = 0; i < rows->n; i++) {
		const char *name = pg_text(rows, i, 0), *ids = pg_text(rows, i, 3);
		if (!is_same(mark_named(send, name), rows, i))
			return false;
		if (strcmp(name, layout_names[LAYOUT_SPAN].name) == 0 &&
			strcmp(ids != NULL ? ids : "", send->span_ids != NULL ? send->span_ids : "") != 0)
			return false;
	}
	return rows->n == known;
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

static int send_marks(struct send *send, const char *json, struct wattle_error *reterr)
{
	const char *const values[] = {send->source.run_id, json};
	return pg_query(send->pg, PG_CALL_MARK, values, 2, NULL, reterr);
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
	int r = json.failed != 0 || ids.failed != 0 ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
						    : send_marks(send, json.data, reterr);
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
	int r = send_marks(send, json.data, reterr);
	buf_finish(&json);
	return r;
}
