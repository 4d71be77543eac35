#include "store/tracking.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "store/sql.h"

#include <errno.h>
#include <string.h>

enum { COLUMNS_MAX = 128 };

struct reading {
	const char *path;
	struct arena *arena;
	struct tracking_table *table;
	struct tracking_row *rows; // owned; in file order
	size_t n, capacity;
	int at[TRACKING_COLUMNS]; // index of each column in the file
	struct wattle_error *reterr;
};

static int out_of_memory(const struct reading *reading)
{
	return error_set(reading->reterr, -ENOMEM, "%s: out of memory", reading->path);
}

static int find_columns(struct reading *reading, const char *const *names, int n)
{
	for (size_t c = 0; c < TRACKING_COLUMNS; c++) {
		int at = 0;
		while (at < n && strcmp(names[at], tracking_columns[c].name) != 0)
			at++;
		if (at == n)
			return error_set(reading->reterr, -EINVAL, "%s: not a tracking file: its data has no column %s",
				reading->path, tracking_columns[c].name);
		reading->at[c] = at;
	}
	return 0;
}

static struct tracking_row *add_row(struct reading *reading)
{
	struct tracking_row *larger = array_reserve(reading->rows, reading->n, &reading->capacity, sizeof(*larger),
		256);
	if (larger == NULL)
		return NULL;
	reading->rows = larger;
	return &larger[reading->n++];
}

static int make_statics(struct reading *reading, int n)
{
	reading->table->statics = arena_alloc(reading->arena, (size_t)n, sizeof(*reading->table->statics));
	reading->table->n_statics = (size_t)n;
	return reading->table->statics != NULL ? 0 : out_of_memory(reading);
}

/* CSV: a record of static names, a record of their values, a record of column names, then the data */

// Representations of a missing value that pandas writes and reads.
static bool is_unknown(const char *text)
{
	static const char *const words[] = {"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static void parse_static(struct tracking_field *field, const char *text)
{
	int64_t integer;
	field->number = (double)NAN;
	if (is_unknown(text))
		return;
	field->is_integer = num_parse_i64(text, &integer) == 0;
	if (num_parse_double(text, &field->number) < 0)
		field->text = text;
}

// Reads the next record as texts in the arena; their number, or negative.
static int read_texts(struct reading *reading, struct csv_file *file, const char **texts)
{
	char *fields[COLUMNS_MAX];
	int n = csv_file_next(file, fields, COLUMNS_MAX, reading->reterr);
	for (int i = 0; i < n; i++) {
		texts[i] = arena_text(reading->arena, fields[i]);
		if (texts[i] == NULL)
			return out_of_memory(reading);
	}
	return n;
}

static int read_csv_statics(struct reading *reading, struct csv_file *file)
{
	const char *names[COLUMNS_MAX], *values[COLUMNS_MAX];
	int n = read_texts(reading, file, names);
	int n_values = n < 0 ? n : read_texts(reading, file, values);
	if (n_values < 0)
		return n_values;
	if (n == 0 || n_values != n || strcmp(names[0], "ram_unit") != 0)
		return error_set(reading->reterr, -EINVAL,
			"%s: not a tracking file: its first two lines must be names and values of the static "
			"data (ram_unit, gpu_ram_unit, time_unit, …)",
			reading->path);
	int r = make_statics(reading, n);
	for (int i = 0; r == 0 && i < n; i++) {
		reading->table->statics[i].name = names[i];
		parse_static(&reading->table->statics[i], values[i]);
	}
	return r;
}

static int parse_row(struct reading *reading, char *const *fields, int line, struct tracking_row *row)
{
	for (size_t c = 0; c < TRACKING_COLUMNS; c++) {
		const char *text = fields[reading->at[c]];
		if (num_parse_double(text, &row->values[c]) == 0)
			continue;
		if (!is_unknown(text))
			return error_set(reading->reterr, -EINVAL, "%s, line %d: %s '%.80s' is not a number",
				reading->path, line, tracking_columns[c].name, text);
		row->values[c] = (double)NAN;
	}
	return 0;
}

static int read_csv_data(struct reading *reading, struct csv_file *file)
{
	const char *names[COLUMNS_MAX];
	int n_columns = read_texts(reading, file, names);
	int r = n_columns < 0 ? n_columns : find_columns(reading, names, n_columns);
	char *fields[COLUMNS_MAX];
	while (r == 0) {
		int n = csv_file_next(file, fields, n_columns, reading->reterr);
		if (n <= 0)
			return n;
		if (n < n_columns)
			return error_set(reading->reterr, -EINVAL, "%s, line %d: %d fields instead of %d",
				reading->path, file->csv.line, n, n_columns);
		struct tracking_row *row = add_row(reading);
		r = row != NULL ? parse_row(reading, fields, file->csv.line, row) : out_of_memory(reading);
	}
	return r;
}

static int read_csv(struct reading *reading)
{
	struct csv_file file;
	int r = csv_file_open(&file, reading->path, reading->reterr);
	if (r == 0)
		r = read_csv_statics(reading, &file);
	if (r == 0)
		r = read_csv_data(reading, &file);
	csv_file_close(&file);
	return r;
}

/* SQLite: tables static_data, of one row, and data */

static int fill_statics(struct reading *reading, sqlite3_stmt *s)
{
	int n = sqlite3_column_count(s);
	int r = make_statics(reading, n);
	for (int i = 0; r == 0 && i < n; i++) {
		struct tracking_field *field = &reading->table->statics[i];
		int type = sqlite3_column_type(s, i);
		field->name = arena_text(reading->arena, sqlite3_column_name(s, i));
		field->number = sql_double(s, i);
		field->is_integer = type == SQLITE_INTEGER;
		if (type == SQLITE_TEXT)
			field->text = sql_text(s, i, reading->arena);
		if (field->name == NULL || (type == SQLITE_TEXT && field->text == NULL))
			return out_of_memory(reading);
	}
	return r;
}

static int fail_sql(const struct reading *reading, sqlite3 *db)
{
	return error_set(reading->reterr, -EINVAL, "%s: not a tracking file: %s", reading->path, sql_reason(db));
}

static int read_sqlite_statics(struct reading *reading, sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db, "SELECT * FROM static_data LIMIT 1", -1, &s, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_step(s);
	int r = 0;
	if (result == SQLITE_ROW)
		r = fill_statics(reading, s);
	else if (result == SQLITE_DONE)
		r = error_set(reading->reterr, -EINVAL, "%s: not a tracking file: table static_data is empty",
			reading->path);
	else
		r = fail_sql(reading, db);
	sqlite3_finalize(s);
	return r;
}

static int fill_row(struct reading *reading, sqlite3_stmt *s)
{
	struct tracking_row *row = add_row(reading);
	if (row == NULL)
		return out_of_memory(reading);
	for (size_t c = 0; c < TRACKING_COLUMNS; c++) {
		int type = sqlite3_column_type(s, reading->at[c]);
		row->values[c] = sql_double(s, reading->at[c]);
		if (type == SQLITE_TEXT || type == SQLITE_BLOB || isinf(row->values[c]))
			return error_set(reading->reterr, -EINVAL, "%s, row %zu of table data: %s is not a number",
				reading->path, reading->n, tracking_columns[c].name);
	}
	return 0;
}

static int find_sqlite_columns(struct reading *reading, sqlite3_stmt *s)
{
	const char *names[COLUMNS_MAX];
	int n = sqlite3_column_count(s);
	for (int i = 0; i < n && i < COLUMNS_MAX; i++) {
		names[i] = sqlite3_column_name(s, i);
		if (names[i] == NULL)
			return out_of_memory(reading);
	}
	return find_columns(reading, names, n < COLUMNS_MAX ? n : COLUMNS_MAX);
}

static int read_sqlite_data(struct reading *reading, sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db, "SELECT * FROM data", -1, &s, NULL);
	int r = result == SQLITE_OK ? find_sqlite_columns(reading, s) : fail_sql(reading, db);
	while (r == 0 && (result = sqlite3_step(s)) == SQLITE_ROW)
		r = fill_row(reading, s);
	if (r == 0 && result != SQLITE_DONE)
		r = fail_sql(reading, db);
	sqlite3_finalize(s);
	return r;
}

static int read_sqlite(struct reading *reading)
{
	sqlite3 *db = NULL;
	int r = sql_open_reader(reading->path, &db, reading->reterr);
	if (r < 0)
		return r;
	r = read_sqlite_statics(reading, db);
	if (r == 0)
		r = read_sqlite_data(reading, db);
	sqlite3_close(db);
	return r;
}

/* Conversion of rows to columns */

// By time, then by file order; rows without a time come last.
static int by_time(const void *left, const void *right)
{
	const struct tracking_row *const *a = left, *const *b = right;
	double t = (*a)->values[TRACKING_TIMESTAMP], u = (*b)->values[TRACKING_TIMESTAMP];
	if (isnan(t) != isnan(u))
		return isnan(t) ? 1 : -1;
	if (t < u || t > u)
		return t < u ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

static int to_columns(const struct reading *reading)
{
	struct tracking_table *table = reading->table;
	wattle_cleanup_free const struct tracking_row **sorted = calloc_array(reading->n, sizeof(*sorted));
	if (sorted == NULL)
		return out_of_memory(reading);
	for (size_t i = 0; i < reading->n; i++)
		sorted[i] = &reading->rows[i];
	qsort(sorted, reading->n, sizeof(*sorted), by_time);
	table->n = reading->n;
	for (size_t c = 0; c < TRACKING_COLUMNS; c++) {
		table->values[c] = arena_alloc(reading->arena, table->n, sizeof(double));
		if (table->values[c] == NULL)
			return out_of_memory(reading);
		for (size_t i = 0; i < table->n; i++)
			table->values[c][i] = sorted[i]->values[c];
	}
	while (table->n_timed < table->n && !isnan(table->values[TRACKING_TIMESTAMP][table->n_timed]))
		table->n_timed++;
	return 0;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);
	return n > m && strcmp(text + n - m, ending) == 0;
}

int tracking_table_read(const char *path, struct arena *arena, struct tracking_table *ret_table,
	struct wattle_error *reterr)
{
	*ret_table = (struct tracking_table){0};
	struct reading reading = {.path = path, .arena = arena, .table = ret_table, .reterr = reterr};
	int r;
	if (ends_with(path, ".csv"))
		r = read_csv(&reading);
	else if (ends_with(path, ".sqlite"))
		r = read_sqlite(&reading);
	else
		r = error_set(reterr, -EINVAL, "%s: a tracking file ends in .csv or .sqlite", path);
	if (r == 0 && reading.n == 0)
		r = error_set(reterr, -EINVAL, "%s: not a usable tracking file: it has no timepoint", path);
	if (r == 0)
		r = to_columns(&reading);
	free(reading.rows);
	return r;
}
