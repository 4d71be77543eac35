#include "store/postgres/send.h"

#include <errno.h>
#include <stdio.h>

const struct layout_names layout_names[LAYOUT_TABLES] = {
	[LAYOUT_SAMPLE] = {"sample", LAYOUT_BY_TIME, "t_ns", "t_ns", "0"},
	[LAYOUT_DEVICE_SAMPLE] = {"device_sample", LAYOUT_BY_TIME, "t_ns", "t_ns", "device"},
	[LAYOUT_PROCESS_SAMPLE] = {"process_sample", LAYOUT_BY_TIME, "t_ns", "t_ns", "0"},
	[LAYOUT_SPAN] = {"span", LAYOUT_BY_ID, "id", "begin_ns", "0"},
	[LAYOUT_USER_METRIC] = {"user_metric", LAYOUT_BY_ROWID, "rowid", "t_ns", "0"},
	[LAYOUT_EVENT] = {"event", LAYOUT_BY_ROWID, "rowid", "t_ns", "0"},
};

/* ---- the server's side ---- */

static const struct {
	int64_t id; // oid in pg_type; fixed
	enum pg_type type;
} types[] = {
	{21, PG_TYPE_INT2},
	{23, PG_TYPE_INT4},
	{20, PG_TYPE_INT8},
	{701, PG_TYPE_FLOAT8},
	{25, PG_TYPE_TEXT},
	{1043, PG_TYPE_TEXT},
	{2950, PG_TYPE_UUID},
	{1184, PG_TYPE_TIME},
};

static void add_server_column(struct layout_server *server, const char *name, int64_t type_id)
{
	for (size_t i = 0; i < ARRAY_SIZE(types) && server->n < LAYOUT_FIELDS_MAX; i++) {
		if (types[i].id != type_id || strlen(name) >= LAYOUT_NAME_SIZE)
			continue;
		struct layout_column *column = &server->columns[server->n++];
		text_copy(column->name, sizeof(column->name), name);
		column->type = types[i].type;
	}
}

int layout_query(struct pg *pg, enum layout_table table, struct layout_server *ret_server, struct wattle_error *reterr)
{
	const char *const name = layout_names[table].name;
	struct pg_rows rows;
	int r = pg_query(pg,
		"SELECT attname::text, atttypid::int8 FROM pg_attribute "
		"WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
		&name, 1, &rows, reterr);
	if (r < 0)
		return r;
	ret_server->n = 0;
	for (size_t i = 0; i < rows.n; i++)
		add_server_column(ret_server, pg_text(&rows, i, 0), pg_i64(&rows, i, 1));
	bool exists = rows.n > 0;
	pg_rows_finish(&rows);
	return exists ? 0 : error_set(reterr, -ENOENT, "PostgreSQL at %s has no table %s", pg_where(pg), name);
}

/* ---- both sides ---- */

static bool is_own(const struct layout_column *column, struct layout_field *ret_field)
{
	static const struct {
		const char *name;
		enum layout_source source;
		enum pg_type type;
	} own[] = {
		{"run_id", LAYOUT_RUN_ID, PG_TYPE_UUID},
		{"time", LAYOUT_TIME, PG_TYPE_TIME},
		{"level", LAYOUT_LEVEL, PG_TYPE_INT2},
	};
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (strcmp(column->name, own[i].name) != 0 || column->type != own[i].type)
			continue;
		*ret_field = (struct layout_field){own[i].source, own[i].type, 0};
		return true;
	}
	return false;
}

static bool has_column(sqlite3 *db, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static void begin_texts(sqlite3 *db, const struct layout_names *names, struct buf *select, struct buf *copy)
{
	bool has_raw = has_column(db, names->name, "energy_raw_uj");
	buf_clear(select);
	buf_clear(copy);
	buf_printf(select, "SELECT %s, %s, %s, %s", names->key_column, names->time_column, names->device,
		has_raw ? "energy_raw_uj" : "NULL");
	buf_printf(copy, "COPY %s (", names->name);
}

int layout_make(sqlite3 *db, const struct layout_server *server, enum layout_table table, struct layout *ret_layout,
	struct buf *select, struct buf *copy)
{
	const struct layout_names *names = &layout_names[table];
	*ret_layout = (struct layout){0};
	if (!has_column(db, names->name, names->time_column))
		return 0;
	begin_texts(db, names, select, copy);
	int next = LAYOUT_FIRST_VALUE;
	for (size_t i = 0; i < server->n; i++) {
		const struct layout_column *column = &server->columns[i];
		struct layout_field field = {LAYOUT_VALUE, column->type, next};
		if (!is_own(column, &field)) {
			if (!has_column(db, names->name, column->name))
				continue;
			buf_printf(select, ", \"%s\"", column->name);
			next++;
		}
		buf_printf(copy, "%s\"%s\"", ret_layout->n > 0 ? ", " : "", column->name);
		ret_layout->fields[ret_layout->n++] = field;
	}
	buf_printf(select, " FROM %s WHERE %s BETWEEN ?1 AND ?2%s ORDER BY %s", names->name, names->key_column,
		names->key == LAYOUT_BY_ID ? " AND (?3 OR end_ns IS NOT NULL)" : "", names->key_column);
	buf_str(copy, ") FROM STDIN (FORMAT binary)");
	return select->failed != 0 || copy->failed != 0 ? -ENOMEM : 0;
}
