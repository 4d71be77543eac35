#include "store/sub_tracking.h"

#include "base/num.h"
#include "base/util.h"
#include "store/sql.h"
#include "store/tracking.h"

#include <errno.h>
#include <string.h>

enum { FIELDS = 4, COLUMNS_MAX = 64 };

struct take {
	sub_tracking_take call;
	void *data;
	struct wattle_error *reterr;
};

static int hand_over(const struct take *take, const struct sub_tracking_row *row, const char *path)
{
	int r = take->call(take->data, row, take->reterr);
	return r == -ENOMEM ? error_set(take->reterr, r, "%s: out of memory", path) : r;
}

/* CSV */

static int parse_row(char *const fields[FIELDS], const struct csv *csv, struct sub_tracking_row *row,
	struct wattle_error *reterr)
{
	const char *position = fields[2];
	if (num_parse_i64(fields[0], &row->pid) < 0)
		return error_set(reterr, -EINVAL, "%s, line %d: process_id '%.80s' is not a number", csv->path,
			csv->line, fields[0]);
	if ((position[0] != '0' && position[0] != '1') || position[1] != '\0')
		return error_set(reterr, -EINVAL, "%s, line %d: position '%.80s' is neither 0 (start) nor 1 (stop)",
			csv->path, csv->line, position);
	if (num_parse_double(fields[3], &row->time_s) < 0)
		return error_set(reterr, -EINVAL, "%s, line %d: timestamp '%.80s' is not a number", csv->path,
			csv->line, fields[3]);
	row->name = fields[1];
	row->is_stop = position[0] == '1';
	row->time_text = fields[3];
	return 0;
}

// Finds the four columns; other columns may be among them.
static int find_columns(char *const *fields, int n, const char *path, int *ret_at, struct wattle_error *reterr)
{
	static const char *const names[FIELDS] = {"process_id", "code_block_name", "position", "timestamp"};
	for (int c = 0; c < FIELDS; c++) {
		ret_at[c] = 0;
		while (ret_at[c] < n && strcmp(fields[ret_at[c]], names[c]) != 0)
			ret_at[c]++;
		if (ret_at[c] == n)
			return error_set(reterr, -EINVAL,
				"%s, line 1: the columns of a sub-tracking file are "
				"process_id,code_block_name,position,timestamp",
				path);
	}
	return 0;
}

static int read_records(struct csv_file *file, const struct take *take)
{
	char *fields[COLUMNS_MAX];
	int at[FIELDS];
	int n_columns = csv_file_next(file, fields, COLUMNS_MAX, take->reterr);
	int r = n_columns < 0 ? n_columns : find_columns(fields, n_columns, file->csv.path, at, take->reterr);
	while (r == 0) {
		int n = csv_file_next(file, fields, n_columns, take->reterr);
		if (n <= 0)
			return n;
		if (n < n_columns)
			return error_set(take->reterr, -EINVAL, "%s, line %d: %d fields instead of %d", file->csv.path,
				file->csv.line, n, n_columns);
		char *const chosen[FIELDS] = {fields[at[0]], fields[at[1]], fields[at[2]], fields[at[3]]};
		struct sub_tracking_row row;
		r = parse_row(chosen, &file->csv, &row, take->reterr);
		if (r == 0)
			r = hand_over(take, &row, file->csv.path);
	}
	return r;
}

static int each_of_csv(const char *path, const struct take *take)
{
	struct csv_file file;
	int r = csv_file_open(&file, path, take->reterr);
	if (r == 0)
		r = read_records(&file, take);
	csv_file_close(&file);
	return r;
}

/* SQLite */

static int read_row(sqlite3_stmt *s, const char *path, int64_t number, struct sub_tracking_row *row,
	struct wattle_error *reterr)
{
	int64_t position = sql_i64(s, 2);
	*row = (struct sub_tracking_row){.pid = sql_i64(s, 0), .is_stop = position == 1, .time_s = sql_double(s, 3)};
	if (!value_ok(row->pid) || !isfinite(row->time_s) || position < 0 || position > 1)
		return error_set(reterr, -EINVAL,
			"%s, row %lld of table data: expected a process ID, a position 0 or 1 and a time", path,
			(long long)number);
	row->name = (const char *)sqlite3_column_text(s, 1);
	return row->name != NULL
		? 0
		: error_set(reterr, -EINVAL, "%s, row %lld of table data: no code_block_name", path, (long long)number);
}

static int each_of_sqlite(const char *path, const struct take *take)
{
	sqlite3 *db = NULL;
	int r = sql_open_reader(path, &db, take->reterr);
	if (r < 0)
		return r;
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db, "SELECT process_id, code_block_name, position, timestamp FROM data", -1, &s,
		NULL);
	if (result == SQLITE_OK)
		result = SQLITE_ROW;
	for (int64_t number = 1; r == 0 && result == SQLITE_ROW; number++) {
		result = sqlite3_step(s);
		struct sub_tracking_row row;
		if (result == SQLITE_ROW)
			r = read_row(s, path, number, &row, take->reterr);
		if (result == SQLITE_ROW && r == 0)
			r = hand_over(take, &row, path);
	}
	if (r == 0 && result != SQLITE_DONE)
		r = error_set(take->reterr, -EINVAL, "%s: not a sub-tracking file: %s", path, sql_reason(db));
	sqlite3_finalize(s);
	sqlite3_close(db);
	return r;
}

const char *sub_tracking_ending(const char *path)
{
	static const char *const endings[] = {".csv", ".sqlite"};
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t n = strlen(path), m = strlen(endings[i]);
		if (n > m && strcmp(path + n - m, endings[i]) == 0)
			return endings[i];
	}
	return NULL;
}

int sub_tracking_each(const char *path, sub_tracking_take take, void *data, struct wattle_error *reterr)
{
	const struct take whom = {take, data, reterr};
	const char *ending = sub_tracking_ending(path);
	if (ending == NULL)
		return error_set(reterr, -EINVAL, "%s: a sub-tracking file ends in .csv or .sqlite", path);
	return strcmp(ending, ".csv") == 0 ? each_of_csv(path, &whom) : each_of_sqlite(path, &whom);
}
