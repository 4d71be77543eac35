#include "store/postgres/send.h"

#include "store/output_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { TABLE_BYTES = 4 << 20 }; // per table and batch; further rows go to the next batch

void source_init(struct source *source, const char *path)
{
	*source = (struct source){.path = path, .previous_mark = VALUE_MISSING};
	for (size_t i = 0; i < LAYOUT_TABLES; i++) {
		buf_init(&source->tables[i].select, 16384);
		buf_init(&source->tables[i].copy_sql, 16384);
		copy_init(&source->tables[i].rows);
	}
}

void source_finish(struct source *source)
{
	source_close(source);
	for (size_t i = 0; i < LAYOUT_TABLES; i++) {
		buf_finish(&source->tables[i].select);
		buf_finish(&source->tables[i].copy_sql);
		copy_finish(&source->tables[i].rows);
	}
	source_marks_finish(&source->next);
	free(source->clocks.segments);
	free(source->clocks.sleeps);
	free(source->last_ns);
	free(source->previous_ns);
	*source = (struct source){0};
}

/* ---- marks ---- */

int source_marks_copy(const struct source_marks *from, struct source_marks *ret_to)
{
	struct range *items = realloc_array(NULL, from->spans.n, sizeof(*items));
	if (items == NULL)
		return -ENOMEM;
	if (from->spans.n > 0)
		memcpy(items, from->spans.items, from->spans.n * sizeof(*items));
	source_marks_finish(ret_to);
	*ret_to = *from;
	ret_to->spans = (struct ranges){.items = items, .n = from->spans.n, .capacity = from->spans.n};
	return 0;
}

void source_marks_finish(struct source_marks *marks)
{
	ranges_finish(&marks->spans);
	*marks = (struct source_marks){0};
}

/* ---- the file ---- */

static bool read_id(struct source *source)
{
	sqlite3_stmt *s = NULL;
	if (sqlite3_prepare_v2(source->db, "SELECT value FROM run WHERE key = 'id'", -1, &s, NULL) == SQLITE_OK &&
		sqlite3_step(s) == SQLITE_ROW)
		sql_copy_text(s, 0, source->run_id, sizeof(source->run_id));
	sqlite3_finalize(s);
	return copy_parse_uuid(source->run_id, source->uuid);
}

int source_open(struct source *source, bool is_live, struct wattle_error *reterr)
{
	source_close(source);
	source->is_live = is_live;
	int r = file_type_check_run(source->path, reterr);
	if (r == 0)
		r = sql_open_reader(source->path, &source->db, reterr);
	if (r < 0)
		return r;
	if (sql_exec(source->db, "PRAGMA temp_store=MEMORY; BEGIN") != SQLITE_OK)
		r = sql_fail(source->db, source->path, reterr);
	else if (!read_id(source))
		r = error_set(reterr, -EINVAL,
			"%s: the run has no ID, so wattle can't check whether it was already sent", source->path);
	else if (source_read_clocks(source) != SQLITE_OK)
		r = sql_fail(source->db, source->path, reterr);
	if (r < 0)
		source_close(source);
	return r;
}

void source_close(struct source *source)
{
	sqlite3_close(source->db);
	source->db = NULL;
}

int source_lay_out(struct source *source, const struct layout_server servers[LAYOUT_TABLES],
	struct wattle_error *reterr)
{
	for (enum layout_table i = 0; i < LAYOUT_TABLES; i++) {
		struct source_table *table = &source->tables[i];
		if (layout_make(source->db, &servers[i], i, &table->layout, &table->select, &table->copy_sql) < 0)
			return error_set(reterr, -ENOMEM, "%s: out of memory", source->path);
		table->is_made = table->layout.n > 0;
	}
	return 0;
}

int64_t source_count(struct source *source, enum layout_table table)
{
	char sql[64];
	snprintf(sql, sizeof(sql), "SELECT count(1) FROM %s", layout_names[table].name);
	return sql_read_i64(source->db, sql, VALUE_MISSING);
}

// Spans have no ordered mark: the file must have at least as many spans as were sent.
static int64_t count_sent(struct source *source, enum layout_table table, int64_t mark, int64_t n)
{
	char sql[160];
	if (layout_names[table].key == LAYOUT_BY_ID) {
		int64_t all = source_count(source, table);
		return all < n ? all : n;
	}
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE %s <= %" PRId64, layout_names[table].name,
		layout_names[table].key_column, mark);
	return sql_read_i64(source->db, sql, VALUE_MISSING);
}

int source_check(struct source *source, const struct source_marks *marks, struct wattle_error *reterr)
{
	for (enum layout_table i = 0; i < LAYOUT_TABLES; i++) {
		const struct source_mark *mark = &marks->tables[i];
		if (mark->n == 0 || !source->tables[i].is_made)
			continue;
		int64_t n = count_sent(source, i, mark->mark, mark->n);
		if (n != mark->n)
			return error_set(reterr, -EPROTO,
				"%s is not the file that was sent to the store before: %" PRId64
				" rows of %s were sent, but this file has %" PRId64
				" of them; send the original file, not an older copy or one extended elsewhere",
				source->path, mark->n, layout_names[i].name, n);
	}
	return 0;
}

/* ---- rows ---- */

// One look-up of the column instead of three. Connections are NOMUTEX, so the value needs no lock.
static void copy_value(struct copy *rows, sqlite3_stmt *s, const struct layout_field *field)
{
	sqlite3_value *value = sqlite3_column_value(s, field->column);
	int kind = sqlite3_value_type(value);
	if (kind == SQLITE_NULL) {
		copy_null(rows);
	} else if (field->type == PG_TYPE_TEXT &&
		(kind == SQLITE_TEXT || kind == SQLITE_INTEGER || kind == SQLITE_FLOAT)) {
		const char *text = (const char *)sqlite3_column_text(s, field->column);
		copy_text(rows, text, (size_t)sqlite3_column_bytes(s, field->column));
	} else if (kind == SQLITE_INTEGER) {
		copy_i64(rows, field->type, sqlite3_value_int64(value));
	} else if (kind == SQLITE_FLOAT && field->type == PG_TYPE_FLOAT8) {
		copy_double(rows, sqlite3_value_double(value));
	} else {
		copy_null(rows);
	}
}

static enum pg_level level_of(struct source *source, enum layout_table table, sqlite3_stmt *s, int64_t t_ns)
{
	if (table != LAYOUT_SAMPLE && table != LAYOUT_DEVICE_SAMPLE)
		return PG_LEVEL_MINUTE;
	return source_level(source, table, sqlite3_column_int64(s, LAYOUT_COLUMN_DEVICE), t_ns,
		sqlite3_column_type(s, LAYOUT_COLUMN_RAW) != SQLITE_NULL);
}

static void copy_source_row(struct source *source, enum layout_table which, sqlite3_stmt *s, int64_t t_ns,
	int64_t wall_ns)
{
	struct source_table *table = &source->tables[which];
	copy_row(&table->rows, table->layout.n);
	for (size_t i = 0; i < table->layout.n; i++) {
		const struct layout_field *field = &table->layout.fields[i];
		if (field->source == LAYOUT_VALUE)
			copy_value(&table->rows, s, field);
		else if (field->source == LAYOUT_RUN_ID)
			copy_uuid(&table->rows, source->uuid);
		else if (field->source == LAYOUT_TIME)
			copy_time(&table->rows, wall_ns);
		else
			copy_i64(&table->rows, PG_TYPE_INT2, level_of(source, which, s, t_ns));
	}
}

// False: the row belongs to the next batch, because this one already has rows of SOURCE_DAYS_MAX days.
static bool note_day(struct source *source, int64_t wall_ns)
{
	static const int64_t day_ns = 86400 * NS_PER_S;
	int32_t day = (int32_t)(wall_ns / day_ns - (wall_ns % day_ns < 0));
	for (size_t i = 0; i < source->n_days; i++)
		if (source->days[i] == day)
			return true;
	if (source->n_days == SOURCE_DAYS_MAX)
		return false;
	source->days[source->n_days++] = day;
	return true;
}

static bool note_sent(struct source *source, enum layout_table which, int64_t key)
{
	source->next.tables[which].n++;
	if (layout_names[which].key == LAYOUT_BY_ID)
		return ranges_add(&source->next.spans, key) == 0;
	source->next.tables[which].mark = key;
	return true;
}

struct reading {
	struct source *source;
	enum layout_table which;
	sqlite3_stmt *statement;
	int64_t last_key;
	bool is_full;
	struct wattle_error *reterr;
};

// Rows of one instant stay in one batch, because the mark is that instant.
static bool is_enough(const struct reading *reading, int64_t key)
{
	const struct source_table *table = &reading->source->tables[reading->which];
	bool may_cut = layout_names[reading->which].key != LAYOUT_BY_TIME || key != reading->last_key;
	return table->rows.size >= TABLE_BYTES && may_cut;
}

static int take_row(struct reading *reading)
{
	struct source *source = reading->source;
	int64_t key = sql_i64(reading->statement, LAYOUT_COLUMN_KEY);
	int64_t t_ns = sql_i64(reading->statement, LAYOUT_COLUMN_TIME);
	int64_t wall_ns = value_ok(t_ns) ? source_wall_ns(source, t_ns) : VALUE_MISSING;
	if (!value_ok(wall_ns))
		return error_set(reading->reterr, -EINVAL, "%s is damaged: a row of %s has no time", source->path,
			layout_names[reading->which].name);
	if (key == INT64_MAX)
		return error_set(reading->reterr, -EINVAL,
			"%s is damaged: a row of %s has an invalid number", source->path,
			layout_names[reading->which].name);
	if (is_enough(reading, key) || !note_day(source, wall_ns)) {
		reading->is_full = true;
		return 0;
	}
	copy_source_row(source, reading->which, reading->statement, t_ns, wall_ns);
	reading->last_key = key;
	if (!note_sent(source, reading->which, key) || source->tables[reading->which].rows.failed)
		return error_set(reading->reterr, -ENOMEM, "%s: out of memory", source->path);
	return 0;
}

static int read_keys(struct reading *reading, int64_t from, int64_t to)
{
	sqlite3_stmt *s = reading->statement;
	sqlite3_reset(s);
	sqlite3_bind_int64(s, 1, from);
	sqlite3_bind_int64(s, 2, to);
	if (sqlite3_bind_parameter_count(s) > 2)
		sqlite3_bind_int(s, 3, !reading->source->is_live);
	int step = SQLITE_ROW, r = 0;
	while (r == 0 && !reading->is_full && (step = sqlite3_step(s)) == SQLITE_ROW)
		r = take_row(reading);
	if (r == 0 && step != SQLITE_ROW && step != SQLITE_DONE)
		r = sql_fail(reading->source->db, reading->source->path, reading->reterr);
	return r;
}

/* Reads spans in the gaps: spans that began before others and ended after them. The number of gaps is limited: a program that
 * opens ever more spans and ends none must not slow down every batch. */
static int read_holes(struct reading *reading, const struct ranges *sent)
{
	enum { HOLES_MAX = 4096 };
	size_t first = sent->n > HOLES_MAX ? sent->n - HOLES_MAX : 0;
	if (!reading->source->is_live)
		first = 0;
	int64_t from = first > 0 ? sent->items[first - 1].to + 1 : INT64_MIN + 1;
	int r = 0;
	for (size_t i = first; r == 0 && !reading->is_full && i < sent->n; i++) {
		if (from < sent->items[i].from)
			r = read_keys(reading, from, sent->items[i].from - 1);
		from = sent->items[i].to + 1;
	}
	return r == 0 && !reading->is_full ? read_keys(reading, from, INT64_MAX) : r;
}

static int read_table(struct source *source, enum layout_table which, const struct source_marks *marks,
	struct wattle_error *reterr)
{
	struct source_table *table = &source->tables[which];
	struct reading reading = {source, which, NULL, VALUE_MISSING, false, reterr};
	if (!table->is_made)
		return 0;
	if (sqlite3_prepare_v2(source->db, table->select.data, -1, &reading.statement, NULL) != SQLITE_OK)
		return sql_fail(source->db, source->path, reterr);
	int64_t mark = marks->tables[which].mark;
	source_begin_levels(source, mark);
	int64_t from = value_ok(mark) ? mark + 1 : INT64_MIN + 1;
	int64_t to = layout_names[which].key == LAYOUT_BY_TIME ? source->before_ns - 1 : INT64_MAX;
	int r = 0;
	if (layout_names[which].key == LAYOUT_BY_ID)
		r = read_holes(&reading, &marks->spans);
	else if (from <= to)
		r = read_keys(&reading, from, to);
	source->is_more |= reading.is_full;
	sqlite3_finalize(reading.statement);
	if (table->rows.n_rows > 0)
		copy_end(&table->rows);
	return r;
}

int64_t source_read(struct source *source, const struct source_marks *marks, struct wattle_error *reterr)
{
	int64_t n = 0;
	source->is_more = false;
	source->n_days = 0;
	if (source_marks_copy(marks, &source->next) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", source->path);
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		copy_clear(&source->tables[i].rows);
	for (enum layout_table i = 0; i < LAYOUT_TABLES; i++) {
		int r = read_table(source, i, marks, reterr);
		if (r < 0)
			return r;
		n += source->tables[i].rows.n_rows;
	}
	return n;
}
