#include "store/sub_tracking.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "store/csv.h"
#include "store/sql.h"

#include <errno.h>
#include <string.h>

enum { FIELDS = 4 };

/* A line of the file: a start (position 0) or a stop (1). */
struct mark {
	int64_t pid;
	const char *name;
	bool is_stop;
	double time_s;
	size_t order; // in the file
};

struct marks {
	struct mark *rows; // owned
	size_t n, capacity;
	struct arena *arena; // of the names
};

static int add_mark(struct marks *marks, const struct mark *mark)
{
	struct mark *larger = array_with_room(marks->rows, marks->n, &marks->capacity, sizeof(*larger), 1024);
	if (larger == NULL)
		return -ENOMEM;
	marks->rows = larger;
	marks->rows[marks->n] = *mark;
	marks->rows[marks->n].order = marks->n;
	marks->n++;
	return 0;
}

/* CSV */

static int parse_mark(char *const fields[FIELDS], struct marks *marks, const struct csv *csv,
	struct wattle_error *reterr)
{
	struct mark mark;
	int64_t position;
	if (num_parse_i64(fields[0], &mark.pid) < 0)
		return error_set(reterr, -EINVAL, "%s, line %d: process_id '%s' is no number", csv->path, csv->line,
			fields[0]);
	if (num_parse_i64(fields[2], &position) < 0 || position < 0 || position > 1)
		return error_set(reterr, -EINVAL, "%s, line %d: position '%s' is neither 0 (start) nor 1 (stop)",
			csv->path, csv->line, fields[2]);
	if (num_parse_double(fields[3], &mark.time_s) < 0)
		return error_set(reterr, -EINVAL, "%s, line %d: timestamp '%s' is no number", csv->path, csv->line,
			fields[3]);
	mark.is_stop = position == 1;
	mark.name = arena_text(marks->arena, fields[1]);
	if (mark.name == NULL || add_mark(marks, &mark) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", csv->path);
	return 0;
}

static int check_header(char *const *fields, int n, const struct csv *csv, struct wattle_error *reterr)
{
	static const char *const names[FIELDS] = {"process_id", "code_block_name", "position", "timestamp"};
	bool same = n == FIELDS;
	for (int i = 0; same && i < FIELDS; i++)
		same = strcmp(fields[i], names[i]) == 0;
	return same ? 0
		    : error_set(reterr, -EINVAL,
			      "%s, line 1: the columns of a sub-tracking file are "
			      "process_id,code_block_name,position,timestamp",
			      csv->path);
}

static int read_csv_text(char *text, const char *path, struct marks *marks, struct wattle_error *reterr)
{
	struct csv csv;
	csv_init(&csv, text, path);
	char *fields[FIELDS];
	int n = csv_next(&csv, fields, FIELDS, reterr);
	int r = n < 0 ? n : check_header(fields, n, &csv, reterr);
	while (r == 0 && (n = csv_next(&csv, fields, FIELDS, reterr)) > 0) {
		if (n < FIELDS)
			return error_set(reterr, -EINVAL, "%s, line %d: %d fields instead of %d", path, csv.line, n,
				FIELDS);
		r = parse_mark(fields, marks, &csv, reterr);
	}
	return r < 0 ? r : n;
}

static int read_csv(const char *path, struct marks *marks, struct wattle_error *reterr)
{
	wattle_cleanup_free char *text = NULL;
	int r = csv_read_file(path, &text, reterr);
	return r < 0 ? r : read_csv_text(text, path, marks, reterr);
}

/* SQLite */

static int read_row(sqlite3_stmt *s, const char *path, struct marks *marks, struct wattle_error *reterr)
{
	struct mark mark = {.pid = sql_i64(s, 0), .time_s = sql_double(s, 3)};
	int64_t position = sql_i64(s, 2);
	if (!value_ok(mark.pid) || isnan(mark.time_s) || position < 0 || position > 1)
		return error_set(reterr, -EINVAL,
			"%s, row %zu of table data: not a process id, a position 0 or 1 and a time", path,
			marks->n + 1);
	mark.is_stop = position == 1;
	mark.name = sql_text(s, 1, marks->arena);
	if (mark.name == NULL)
		return error_set(reterr, -EINVAL, "%s, row %zu of table data: no code_block_name", path, marks->n + 1);
	return add_mark(marks, &mark) == 0 ? 0 : error_set(reterr, -ENOMEM, "%s: out of memory", path);
}

static int read_sqlite(const char *path, struct marks *marks, struct wattle_error *reterr)
{
	sqlite3 *db = NULL;
	int r = sql_open_reader(path, &db, reterr);
	if (r < 0)
		return r;
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db,
		"SELECT process_id, code_block_name, position, timestamp FROM data ORDER BY rowid", -1, &s, NULL);
	while (r == 0 && result != SQLITE_DONE && (result == SQLITE_OK || result == SQLITE_ROW)) {
		result = sqlite3_step(s);
		if (result == SQLITE_ROW)
			r = read_row(s, path, marks, reterr);
	}
	if (r == 0 && result != SQLITE_DONE)
		r = error_set(reterr, -EINVAL, "%s: no sub-tracking file: %s", path, sqlite3_errmsg(db));
	sqlite3_finalize(s);
	sqlite3_close(db);
	return r;
}

/* Pairing */

// Marks of one process and name together, in order of time, then of the file.
static int by_block(const void *left, const void *right)
{
	const struct mark *a = left, *b = right;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	int names = strcmp(a->name, b->name);
	if (names != 0)
		return names;
	if (a->time_s < b->time_s || a->time_s > b->time_s)
		return a->time_s < b->time_s ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static bool same_block(const struct mark *a, const struct mark *b)
{
	return a->pid == b->pid && strcmp(a->name, b->name) == 0;
}

/* Last in, first out: the calls themselves are the stack, linked through `below`; a call that is never stopped keeps
 * its end unknown. */
static void pair(const struct marks *marks, struct sub_tracking_call *calls, size_t *below, size_t *ret_n,
	size_t *ret_n_strays)
{
	const size_t none = SIZE_MAX;
	size_t n = 0, strays = 0, top = none;
	for (size_t i = 0; i < marks->n; i++) {
		const struct mark *mark = &marks->rows[i];
		if (i > 0 && !same_block(mark, mark - 1))
			top = none;
		if (!mark->is_stop) {
			calls[n] = (struct sub_tracking_call){mark->pid, mark->name, mark->time_s, (double)NAN};
			below[n] = top;
			top = n++;
		} else if (top != none) {
			calls[top].end_s = mark->time_s;
			top = below[top];
		} else {
			strays++;
		}
	}
	*ret_n = n;
	*ret_n_strays = strays;
}

static int by_begin(const void *left, const void *right)
{
	const struct sub_tracking_call *a = left, *b = right;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->begin_s < b->begin_s || a->begin_s > b->begin_s)
		return a->begin_s < b->begin_s ? -1 : 1;
	return strcmp(a->name, b->name);
}

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);
	return n > m && strcmp(text + n - m, ending) == 0;
}

static int read_marks(const char *path, struct marks *marks, struct wattle_error *reterr)
{
	if (ends_with(path, ".csv"))
		return read_csv(path, marks, reterr);
	if (ends_with(path, ".sqlite"))
		return read_sqlite(path, marks, reterr);
	return error_set(reterr, -EINVAL, "%s: a sub-tracking file ends in .csv or .sqlite", path);
}

static int pair_all(struct marks *marks, struct sub_tracking_call **ret_calls, size_t *ret_n, size_t *ret_n_strays)
{
	struct sub_tracking_call *calls = arena_alloc(marks->arena, marks->n, sizeof(*calls));
	wattle_cleanup_free size_t *below = calloc_array(marks->n, sizeof(*below));
	if (calls == NULL || below == NULL)
		return -ENOMEM;
	if (marks->n > 0)
		qsort(marks->rows, marks->n, sizeof(*marks->rows), by_block);
	pair(marks, calls, below, ret_n, ret_n_strays);
	if (*ret_n > 0)
		qsort(calls, *ret_n, sizeof(*calls), by_begin);
	*ret_calls = calls;
	return 0;
}

int sub_tracking_read(const char *path, struct arena *arena, struct sub_tracking_call **ret_calls, size_t *ret_n,
	size_t *ret_n_strays, struct wattle_error *reterr)
{
	struct marks marks = {.arena = arena};
	int r = read_marks(path, &marks, reterr);
	if (r == 0 && (r = pair_all(&marks, ret_calls, ret_n, ret_n_strays)) < 0)
		error_set(reterr, r, "%s: out of memory", path);
	free(marks.rows);
	return r;
}
