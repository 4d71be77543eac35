/* A run file as a row source. */
#include "store/run_read.h"

#include "base/buf.h"
#include "base/util.h"
#include "store/schema.h"

#include <string.h>

static int64_t cell_i64(const void *row, int column)
{
	return sql_i64((sqlite3_stmt *)(uintptr_t)row, column);
}

static double cell_real(const void *row, int column)
{
	return sql_double((sqlite3_stmt *)(uintptr_t)row, column);
}

// Read as bytes: for a NUL-terminated text SQLite would allocate memory per row. One look-up of the column, as in sql_i64.
static const char *cell_bytes(const void *row, int column, size_t *ret_size)
{
	sqlite3_value *value = sqlite3_column_value((sqlite3_stmt *)(uintptr_t)row, column);
	*ret_size = 0;
	if (sqlite3_value_type(value) == SQLITE_NULL)
		return NULL;
	const char *bytes = sqlite3_value_blob(value);
	if (bytes == NULL) // an empty text is not null
		return "";
	*ret_size = (size_t)sqlite3_value_bytes(value);
	return bytes;
}

static void cell_i64s(const void *row, int first, size_t n, int64_t *ret_values)
{
	for (size_t i = 0; i < n; i++)
		ret_values[i] = sql_i64((sqlite3_stmt *)(uintptr_t)row, first + (int)i);
}

static const struct cells_ops ops = {cell_i64, cell_real, cell_bytes, cell_i64s};

static bool has_column(struct run_reader *reader, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(reader->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) ==
		SQLITE_OK;
}

static int prepare(struct run_reader *reader, const struct run_question *question, sqlite3_stmt **ret_statement)
{
	struct buf sql;
	buf_init(&sql, 65536);
	buf_printf(&sql, "SELECT %s FROM %s", question->columns, question->table);
	if (question->where != NULL)
		buf_printf(&sql, " WHERE %s", question->where);
	if (question->in_time)
		buf_printf(&sql, " %s t_ns BETWEEN ?1 AND ?2", question->where != NULL ? "AND" : "WHERE");
	if (question->order != NULL)
		buf_printf(&sql, " ORDER BY %s", question->order);
	int r = sql.failed != 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(reader->db, sql.data, -1, ret_statement, NULL);
	buf_finish(&sql);
	return r;
}

static int take_rows(const struct run_reader *reader, sqlite3_stmt *s, run_take *take, void *data)
{
	const struct cells cells = {&ops, s};
	int r;
	while ((r = sqlite3_step(s)) == SQLITE_ROW) {
		if (arena_bytes(reader->arena) > reader->max_bytes)
			return SQLITE_NOMEM;
		if ((r = take(data, &cells)) != 0)
			return r;
	}
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* ---- whole tables of samples ---- */

static int64_t number_i64(const void *row, int column)
{
	return ((const int64_t *)row)[column];
}

static double number_real(const void *row, int column)
{
	return value_to_double(number_i64(row, column), 1);
}

static const char *number_bytes(const void *row, int column, size_t *ret_size)
{
	(void)row;
	(void)column;
	*ret_size = 0;
	return NULL;
}

static void number_i64s(const void *row, int first, size_t n, int64_t *ret_values)
{
	memcpy(ret_values, (const int64_t *)row + first, n * sizeof(*ret_values));
}

struct pages_taker {
	const struct run_reader *reader;
	run_take *take;
	void *data;
};

static int take_numbers(void *data, const int64_t *values)
{
	static const struct cells_ops ops_of_numbers = {number_i64, number_real, number_bytes, number_i64s};
	const struct pages_taker *taker = data;
	const struct cells cells = {&ops_of_numbers, values};
	return arena_bytes(taker->reader->arena) <= taker->reader->max_bytes ? taker->take(taker->data, &cells)
									     : SQLITE_NOMEM;
}

static int read_pages(struct run_reader *reader, const struct run_question *question, run_take *take, void *data)
{
	bool is_whole = question->in_time && question->where == NULL && reader->n_ranges == 1 &&
		reader->ranges[0].from_ns == INT64_MIN && reader->ranges[0].to_ns == INT64_MAX;
	struct pages_taker taker = {reader, take, data};
	for (enum metric_scope scope = METRIC_RUN; is_whole && scope < METRIC_SCOPES; scope++)
		if (strcmp(question->table, schema_sample_table(scope)) == 0)
			return table_pages_read(reader->db, scope, question->columns, take_numbers, &taker);
	return TABLE_PAGES_OTHER;
}

static int read_rows(struct run_reader *reader, const struct run_question *question, run_take *take, void *data)
{
	int by_pages = read_pages(reader, question, take, data);
	if (by_pages != TABLE_PAGES_OTHER)
		return by_pages;
	sqlite3_stmt *s = NULL;
	int r = prepare(reader, question, &s);
	size_t n = question->in_time ? reader->n_ranges : 1;
	for (size_t i = 0; r == SQLITE_OK && i < n; i++) {
		if (question->in_time) {
			sqlite3_reset(s);
			sqlite3_bind_int64(s, 1, reader->ranges[i].from_ns);
			sqlite3_bind_int64(s, 2, reader->ranges[i].to_ns);
		}
		r = take_rows(reader, s, take, data);
	}
	sqlite3_finalize(s);
	return r;
}

/* Upper limit of the number of spans: ids are row ids, so their range gives it without reading all rows, unless the range
 * exceeds what a file of this size can hold. */
static int max_spans(struct run_reader *reader, size_t *ret_n)
{
	int64_t range = sql_read_i64(reader->db, "SELECT (SELECT max(id) FROM span) - (SELECT min(id) FROM span)", -1);
	int64_t pages = sql_read_i64(reader->db, "PRAGMA page_count", 0);
	enum { ROWS_A_PAGE = 512 };
	if (range >= 0 && range < pages * ROWS_A_PAGE)
		*ret_n = (size_t)range + 1;
	else
		*ret_n = (size_t)sql_read_i64(reader->db, "SELECT count(1) FROM span", 0);
	return 0;
}

const struct run_source run_source_file = {
	.has_column = has_column,
	.read = read_rows,
	.max_spans = max_spans,
	.sample_count = {"sample", "count(*)", .in_time = true},
	.device_counts = {"device_sample", "device, 1",
		.in_time = true}, // added up here, because SQLite would sort the rows by device
};
