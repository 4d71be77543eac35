#include "store/run_read.h"

#include "store/schema.h"

#include <assert.h>
#include <string.h>

enum { KEYS_MAX = 3, METRICS_MAX = 64 };
static_assert((int)RUN_COUNT <= METRICS_MAX && (int)DEVICE_COUNT <= METRICS_MAX && (int)PROCESS_COUNT <= METRICS_MAX,
	"a row of any scope fits");

/* Rows of a table of samples on their way into columns. A file of an older wattle lacks some metrics and one of a
 * newer wattle has others: each column is found by its name. */
struct sample_rows {
	sqlite3_stmt *select;
	int n_keys;
	size_t n_metrics;
	int column_of[METRICS_MAX]; // in the SELECT, -1: the file has no such metric
};

static int column_named(sqlite3_stmt *s, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(s); i++)
		if (strcmp(sqlite3_column_name(s, i), name) == 0)
			return i;
	return -1;
}

// A statement with ?1 and ?2: the time that is read.
static int prepare_in_time(struct run_reader *reader, const char *select, sqlite3_stmt **ret_statement)
{
	int r = sqlite3_prepare_v2(reader->db, select, -1, ret_statement, NULL);
	if (r != SQLITE_OK)
		return r;
	sqlite3_bind_int64(*ret_statement, 1, reader->from_ns);
	sqlite3_bind_int64(*ret_statement, 2, reader->to_ns);
	return SQLITE_OK;
}

static size_t count_in_time(struct run_reader *reader, const char *select)
{
	sqlite3_stmt *s = NULL;
	size_t n = 0;
	if (prepare_in_time(reader, select, &s) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
		n = (size_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

// ORDER BY the primary key, which is how the rows lie in the file: nothing is sorted. The keys are its first columns.
static int open_rows(struct run_reader *reader, enum metric_scope scope, struct sample_rows *ret_rows)
{
	static const char *const selects[METRIC_SCOPES] = {
		[METRIC_RUN] = "SELECT * FROM sample WHERE t_ns BETWEEN ?1 AND ?2 ORDER BY t_ns",
		[METRIC_DEVICE] = "SELECT * FROM device_sample WHERE t_ns BETWEEN ?1 AND ?2 ORDER BY t_ns, device",
		[METRIC_PROCESS] = ("SELECT * FROM process_sample WHERE t_ns BETWEEN ?1 AND ?2 "
				    "ORDER BY t_ns, pid, start_ns"),
	};
	struct sample_rows rows = {.n_keys = schema_key_count(scope)};
	int r = prepare_in_time(reader, selects[scope], &rows.select);
	if (r != SQLITE_OK)
		return r;
	const struct metric *metrics = metric_table(scope, &rows.n_metrics);
	for (size_t i = 0; i < rows.n_metrics; i++)
		rows.column_of[i] = column_named(rows.select, metrics[i].name);
	*ret_rows = rows;
	return SQLITE_OK;
}

// SQLITE_ROW, SQLITE_DONE or a failure.
static int next_row(const struct sample_rows *rows, int64_t *keys, int64_t *values)
{
	int r = sqlite3_step(rows->select);
	if (r != SQLITE_ROW)
		return r;
	for (int i = 0; i < rows->n_keys; i++)
		keys[i] = sqlite3_column_int64(rows->select, i);
	for (size_t i = 0; i < rows->n_metrics; i++)
		values[i] = rows->column_of[i] >= 0 ? sql_i64(rows->select, rows->column_of[i]) : VALUE_MISSING;
	return r;
}

static int close_rows(const struct sample_rows *rows, int r)
{
	sqlite3_finalize(rows->select);
	return r == SQLITE_DONE || r == SQLITE_ROW ? SQLITE_OK : r;
}

static bool new_columns(struct arena *arena, size_t n, int64_t **columns, size_t n_columns)
{
	for (size_t i = 0; i < n_columns; i++) {
		columns[i] = arena_alloc(arena, n, sizeof(*columns[i]));
		if (columns[i] == NULL)
			return false;
	}
	return true;
}

static void put_keys(int64_t *const *columns, size_t at, const int64_t *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		columns[i][at] = keys[i];
}

static int64_t *missing_values(struct arena *arena, size_t room, size_t n)
{
	int64_t *column = arena_alloc(arena, room, sizeof(*column));
	for (size_t i = 0; column != NULL && i < n; i++)
		column[i] = VALUE_MISSING;
	return column;
}

/* Most machines tell a part of the metrics, and of a day each column is megabytes: one gets memory with its first value and is
 * NULL until then. */
static bool put_values(struct arena *arena, int64_t **columns, size_t n_columns, size_t room, size_t at,
	const int64_t *values)
{
	for (size_t i = 0; i < n_columns; i++) {
		if (columns[i] == NULL && !value_ok(values[i]))
			continue;
		if (columns[i] == NULL)
			columns[i] = missing_values(arena, room, at);
		if (columns[i] == NULL)
			return false;
		columns[i][at] = values[i];
	}
	return true;
}

// Those that never got one share one.
static bool share_missing(struct run_reader *reader, int64_t **columns, size_t n_columns, size_t n)
{
	for (size_t i = 0; i < n_columns; i++) {
		if (columns[i] != NULL)
			continue;
		if (reader->missing == NULL || reader->n_missing < n) {
			reader->missing = missing_values(reader->arena, n, n);
			reader->n_missing = n;
		}
		columns[i] = reader->missing;
		if (columns[i] == NULL)
			return false;
	}
	return true;
}

int run_read_samples(struct run_reader *reader, struct run *run)
{
	size_t n = count_in_time(reader, "SELECT count(*) FROM sample WHERE t_ns BETWEEN ?1 AND ?2");
	if (!new_columns(reader->arena, n, &run->t_ns, 1))
		return SQLITE_NOMEM;
	struct sample_rows rows;
	int r = open_rows(reader, METRIC_RUN, &rows);
	if (r != SQLITE_OK)
		return r;
	int64_t keys[KEYS_MAX], values[METRICS_MAX];
	while (run->n < n && (r = next_row(&rows, keys, values)) == SQLITE_ROW) {
		run->t_ns[run->n] = keys[0];
		if (!put_values(reader->arena, run->values, RUN_COUNT, n, run->n++, values))
			return close_rows(&rows, SQLITE_NOMEM);
	}
	r = close_rows(&rows, r);
	return r == SQLITE_OK && !share_missing(reader, run->values, RUN_COUNT, n) ? SQLITE_NOMEM : r;
}

static struct run_device *find_device(struct run *run, int64_t id)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].id == id)
			return &run->devices[i];
	return NULL;
}

// How many samples each device has. Counted here: SQLite would sort them by device.
static int count_of_devices(struct run_reader *reader, struct run *run, size_t *counts)
{
	sqlite3_stmt *s = NULL;
	int r = prepare_in_time(reader, "SELECT device FROM device_sample WHERE t_ns BETWEEN ?1 AND ?2", &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		r = SQLITE_OK;
		const struct run_device *device = find_device(run, sqlite3_column_int64(s, 0));
		if (device != NULL)
			counts[device - run->devices]++;
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

// Most devices are read at the times of the run's samples and at no others; then the column is the run's.
static bool put_time(struct arena *arena, const struct run *run, struct run_device *device, size_t room, int64_t t_ns)
{
	bool is_shared = device->t_ns == run->t_ns;
	if (is_shared && device->n < run->n && run->t_ns[device->n] == t_ns)
		return true;
	if (is_shared) {
		device->t_ns = arena_alloc(arena, room, sizeof(*device->t_ns));
		if (device->t_ns == NULL)
			return false;
		memcpy(device->t_ns, run->t_ns, device->n * sizeof(*device->t_ns));
	}
	device->t_ns[device->n] = t_ns;
	return true;
}

static int read_device_rows(struct run_reader *reader, struct run *run, const size_t *counts)
{
	struct sample_rows rows;
	int r = open_rows(reader, METRIC_DEVICE, &rows);
	if (r != SQLITE_OK)
		return r;
	int64_t keys[KEYS_MAX], values[METRICS_MAX];
	while ((r = next_row(&rows, keys, values)) == SQLITE_ROW) {
		struct run_device *device = find_device(run, keys[1]);
		size_t room = device != NULL ? counts[device - run->devices] : 0;
		if (device == NULL || device->n == room)
			continue; // a row of no device is no reason to lose the others
		if (!put_time(reader->arena, run, device, room, keys[0]) ||
			!put_values(reader->arena, device->values, DEVICE_COUNT, room, device->n++, values))
			return close_rows(&rows, SQLITE_NOMEM);
	}
	return close_rows(&rows, r);
}

int run_read_device_samples(struct run_reader *reader, struct run *run)
{
	size_t *counts = arena_alloc(reader->arena, run->n_devices, sizeof(*counts));
	if (counts == NULL)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < run->n_devices; i++)
		run->devices[i].t_ns = run->t_ns;
	int r = count_of_devices(reader, run, counts);
	if (r == SQLITE_OK)
		r = read_device_rows(reader, run, counts);
	for (size_t i = 0; r == SQLITE_OK && i < run->n_devices; i++)
		if (!share_missing(reader, run->devices[i].values, DEVICE_COUNT, counts[i]))
			r = SQLITE_NOMEM;
	return r;
}

int run_read_process_samples(struct run_reader *reader, struct run *run)
{
	struct run_process_samples *samples = &run->process_samples;
	size_t n = count_in_time(reader, "SELECT count(*) FROM process_sample WHERE t_ns BETWEEN ?1 AND ?2");
	int64_t *keys_of[KEYS_MAX];
	if (!new_columns(reader->arena, n, keys_of, KEYS_MAX))
		return SQLITE_NOMEM;
	samples->t_ns = keys_of[0];
	samples->pid = keys_of[1];
	samples->start_ns = keys_of[2];
	struct sample_rows rows;
	int r = open_rows(reader, METRIC_PROCESS, &rows);
	if (r != SQLITE_OK)
		return r;
	int64_t keys[KEYS_MAX], values[METRICS_MAX];
	while (samples->n < n && (r = next_row(&rows, keys, values)) == SQLITE_ROW) {
		put_keys(keys_of, samples->n, keys, KEYS_MAX);
		if (!put_values(reader->arena, samples->values, PROCESS_COUNT, n, samples->n++, values))
			return close_rows(&rows, SQLITE_NOMEM);
	}
	r = close_rows(&rows, r);
	return r == SQLITE_OK && !share_missing(reader, samples->values, PROCESS_COUNT, n) ? SQLITE_NOMEM : r;
}
