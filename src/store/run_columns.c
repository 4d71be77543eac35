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

static void put_values(int64_t *const *columns, size_t at, const int64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		columns[i][at] = values[i];
}

int run_read_samples(struct run_reader *reader, struct run *run)
{
	size_t n = count_in_time(reader, "SELECT count(*) FROM sample WHERE t_ns BETWEEN ?1 AND ?2");
	if (!new_columns(reader->arena, n, &run->t_ns, 1) || !new_columns(reader->arena, n, run->values, RUN_COUNT))
		return SQLITE_NOMEM;
	struct sample_rows rows;
	int r = open_rows(reader, METRIC_RUN, &rows);
	if (r != SQLITE_OK)
		return r;
	int64_t keys[KEYS_MAX], values[METRICS_MAX];
	while (run->n < n && (r = next_row(&rows, keys, values)) == SQLITE_ROW) {
		run->t_ns[run->n] = keys[0];
		put_values(run->values, run->n++, values, RUN_COUNT);
	}
	return close_rows(&rows, r);
}

static struct run_device *find_device(struct run *run, int64_t id)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].id == id)
			return &run->devices[i];
	return NULL;
}

// How many samples each device has, so that its columns can be allocated; SQLite walks the key once.
static int size_devices(struct run_reader *reader, struct run *run, size_t *ret_capacities)
{
	sqlite3_stmt *s = NULL;
	int r = prepare_in_time(reader,
		"SELECT device, count(*) FROM device_sample WHERE t_ns BETWEEN ?1 AND ?2 GROUP BY device", &s);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		r = SQLITE_OK;
		struct run_device *device = find_device(run, sqlite3_column_int64(s, 0));
		if (device == NULL)
			continue;
		size_t n = (size_t)sqlite3_column_int64(s, 1);
		if (!new_columns(reader->arena, n, &device->t_ns, 1) ||
			!new_columns(reader->arena, n, device->values, DEVICE_COUNT))
			r = SQLITE_NOMEM;
		ret_capacities[device - run->devices] = n;
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

int run_read_device_samples(struct run_reader *reader, struct run *run)
{
	size_t *capacities = arena_alloc(reader->arena, run->n_devices, sizeof(*capacities));
	if (capacities == NULL)
		return SQLITE_NOMEM;
	int r = size_devices(reader, run, capacities);
	if (r != SQLITE_OK)
		return r;
	struct sample_rows rows;
	r = open_rows(reader, METRIC_DEVICE, &rows);
	if (r != SQLITE_OK)
		return r;
	int64_t keys[KEYS_MAX], values[METRICS_MAX];
	while ((r = next_row(&rows, keys, values)) == SQLITE_ROW) {
		struct run_device *device = find_device(run, keys[1]);
		if (device == NULL || device->n == capacities[device - run->devices])
			continue; // a row of no device is no reason to lose the others
		device->t_ns[device->n] = keys[0];
		put_values(device->values, device->n++, values, DEVICE_COUNT);
	}
	return close_rows(&rows, r);
}

int run_read_process_samples(struct run_reader *reader, struct run *run)
{
	struct run_process_samples *samples = &run->process_samples;
	size_t n = count_in_time(reader, "SELECT count(*) FROM process_sample WHERE t_ns BETWEEN ?1 AND ?2");
	int64_t *keys_of[KEYS_MAX];
	if (!new_columns(reader->arena, n, keys_of, KEYS_MAX) ||
		!new_columns(reader->arena, n, samples->values, PROCESS_COUNT))
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
		put_values(keys_of, samples->n, keys, KEYS_MAX);
		put_values(samples->values, samples->n++, values, PROCESS_COUNT);
	}
	return close_rows(&rows, r);
}
