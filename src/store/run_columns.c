#include "store/run_read.h"

#include "base/buf.h"

#include "store/schema.h"

#include <assert.h>
#include <string.h>

enum { KEYS_MAX = 3, METRICS_MAX = 64 };
static_assert((int)RUN_COUNT <= METRICS_MAX && (int)DEVICE_COUNT <= METRICS_MAX && (int)PROCESS_COUNT <= METRICS_MAX,
	"a row of any scope fits");

/* Rows of a table of samples on their way into columns: first the keys, then the metrics that the table has. A file of an older
 * wattle lacks some and one of a newer wattle has others. */
struct sample_rows {
	struct run_reader *reader;
	struct run *run;
	int n_keys;
	size_t n_metrics, n_read;
	size_t metric_of[METRICS_MAX]; // of the n_read columns behind the keys
	int64_t keys[KEYS_MAX];
	int64_t read[METRICS_MAX], values[METRICS_MAX];
	size_t room;          // rows that there is room for
	const size_t *counts; // of devices
};

static const char *const key_columns[METRIC_SCOPES] = {
	[METRIC_RUN] = "t_ns",
	[METRIC_DEVICE] = "t_ns, device",
	[METRIC_PROCESS] = "t_ns, pid, start_ns",
};

/* What only GPUs tell. Where there is none the columns are null throughout, and reading nulls takes as long as reading numbers: they are
 * two thirds of a row. */
static bool is_of_gpus(enum metric_scope scope, size_t metric)
{
	return scope == METRIC_DEVICE &&
		((metric >= DEVICE_UTILIZATION && metric <= DEVICE_OTHERS_MIG_SHARE) ||
			(metric >= DEVICE_SM_CLOCK && metric <= DEVICE_THROTTLE_REASONS));
}

// Of a kind that only a later wattle knows everything is read.
static bool has_gpus(const struct run *run)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].kind == DOMAIN_GPU || run->devices[i].kind == DOMAIN_KINDS)
			return true;
	return false;
}

// ORDER BY the primary key, which is how the rows lie in a run file: nothing is sorted.
static int read_samples(struct sample_rows *rows, enum metric_scope scope, run_take *take)
{
	struct buf columns;
	buf_init(&columns, 65536);
	buf_str(&columns, key_columns[scope]);
	const struct metric *metrics = metric_table(scope, &rows->n_metrics);
	const char *table = schema_sample_table(scope);
	rows->n_keys = schema_key_count(scope);
	bool gpus = has_gpus(rows->run);
	for (size_t i = 0; i < rows->n_metrics; i++) {
		rows->values[i] = VALUE_MISSING;
		if ((is_of_gpus(scope, i) && !gpus) ||
			!rows->reader->source->has_column(rows->reader, table, metrics[i].name))
			continue;
		buf_printf(&columns, ", %s", metrics[i].name);
		rows->metric_of[rows->n_read++] = i;
	}
	const struct run_question question = {table, columns.data, .order = key_columns[scope], .in_time = true};
	int r = columns.failed != 0 ? SQLITE_NOMEM : rows->reader->source->read(rows->reader, &question, take, rows);
	buf_finish(&columns);
	return r;
}

static void take_values(struct sample_rows *rows, const struct cells *cells)
{
	cells->ops->i64s(cells->row, 0, (size_t)rows->n_keys, rows->keys);
	rows->keys[0] = run_clock_ns(rows->keys[0]);
	cells->ops->i64s(cells->row, rows->n_keys, rows->n_read, rows->read);
	for (size_t i = 0; i < rows->n_read; i++)
		rows->values[rows->metric_of[i]] = rows->read[i];
}

int run_take_sum(void *data, const struct cells *cells)
{
	int64_t n = cells_i64(cells, 0);
	*(size_t *)data += value_ok(n) && n > 0 ? (size_t)n : 0;
	return 0;
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

static int take_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	struct run *run = rows->run;
	if (run->n == rows->room)
		return 0;
	take_values(rows, cells);
	run->t_ns[run->n] = rows->keys[0];
	return put_values(rows->reader->arena, run->values, RUN_COUNT, rows->room, run->n++, rows->values)
		? 0
		: SQLITE_NOMEM;
}

int run_read_samples(struct run_reader *reader, struct run *run)
{
	size_t n = 0;
	int r = reader->source->read(reader, &reader->source->sample_count, run_take_sum, &n);
	if (r != 0)
		return r;
	if (!new_columns(reader->arena, n, &run->t_ns, 1))
		return SQLITE_NOMEM;
	struct sample_rows rows = {.reader = reader, .run = run, .room = n};
	r = read_samples(&rows, METRIC_RUN, take_sample);
	return r == 0 && !share_missing(reader, run->values, RUN_COUNT, n) ? SQLITE_NOMEM : r;
}

static struct run_device *find_device(struct run *run, int64_t id)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].id == id)
			return &run->devices[i];
	return NULL;
}

struct device_counts {
	struct run *run;
	size_t *counts;
};

static int take_count(void *data, const struct cells *cells)
{
	const struct device_counts *counts = data;
	const struct run_device *device = find_device(counts->run, cells_i64(cells, 0));
	if (device != NULL)
		counts->counts[device - counts->run->devices] += (size_t)cells_i64(cells, 1);
	return 0;
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

static int take_device_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	take_values(rows, cells);
	struct run_device *device = find_device(rows->run, rows->keys[1]);
	size_t room = device != NULL ? rows->counts[device - rows->run->devices] : 0;
	if (device == NULL || device->n == room)
		return 0; // a row of no device is no reason to lose the others
	struct arena *arena = rows->reader->arena;
	if (!put_time(arena, rows->run, device, room, rows->keys[0]) ||
		!put_values(arena, device->values, DEVICE_COUNT, room, device->n++, rows->values))
		return SQLITE_NOMEM;
	return 0;
}

// The columns without any value are shared, and stay as they are.
static void apply_gain(struct run_device *device)
{
	static const enum device_metric scaled[] = {DEVICE_ENERGY, DEVICE_POWER, DEVICE_POWER_AVERAGE};
	for (size_t m = 0; !isnan(device->gain) && m < ARRAY_SIZE(scaled); m++) {
		int64_t *values = device->values[scaled[m]];
		for (size_t i = 0; i < device->n; i++)
			if (value_ok(values[i]) && llabs(values[i]) < INT64_MAX / 4)
				values[i] = llround(device->gain * (double)values[i]);
	}
}

int run_read_device_samples(struct run_reader *reader, struct run *run)
{
	size_t *counts = arena_alloc(reader->arena, run->n_devices, sizeof(*counts));
	if (counts == NULL)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < run->n_devices; i++)
		run->devices[i].t_ns = run->t_ns;
	struct device_counts counting = {run, counts};
	int r = reader->source->read(reader, &reader->source->device_counts, take_count, &counting);
	struct sample_rows rows = {.reader = reader, .run = run, .counts = counts};
	if (r == 0)
		r = read_samples(&rows, METRIC_DEVICE, take_device_sample);
	for (size_t i = 0; r == 0 && i < run->n_devices; i++)
		if (!share_missing(reader, run->devices[i].values, DEVICE_COUNT, counts[i]))
			r = SQLITE_NOMEM;
	for (size_t i = 0; r == 0 && i < run->n_devices; i++)
		apply_gain(&run->devices[i]);
	return r;
}

static int take_process_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	struct run_process_samples *samples = &rows->run->process_samples;
	if (samples->n == rows->room)
		return 0;
	take_values(rows, cells);
	int64_t *const keys_of[KEYS_MAX] = {samples->t_ns, samples->pid, samples->start_ns};
	put_keys(keys_of, samples->n, rows->keys, KEYS_MAX);
	bool ok = put_values(rows->reader->arena, samples->values, PROCESS_COUNT, rows->room, samples->n++,
		rows->values);
	return ok ? 0 : SQLITE_NOMEM;
}

int run_read_process_samples(struct run_reader *reader, struct run *run)
{
	static const struct run_question count = {"process_sample", "count(*)", .in_time = true};
	struct run_process_samples *samples = &run->process_samples;
	size_t n = 0;
	int r = reader->source->read(reader, &count, run_take_sum, &n);
	if (r != 0)
		return r;
	int64_t *keys_of[KEYS_MAX];
	if (!new_columns(reader->arena, n, keys_of, KEYS_MAX))
		return SQLITE_NOMEM;
	samples->t_ns = keys_of[0];
	samples->pid = keys_of[1];
	samples->start_ns = keys_of[2];
	struct sample_rows rows = {.reader = reader, .run = run, .room = n};
	r = read_samples(&rows, METRIC_PROCESS, take_process_sample);
	return r == 0 && !share_missing(reader, samples->values, PROCESS_COUNT, n) ? SQLITE_NOMEM : r;
}
