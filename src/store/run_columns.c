#include "store/run_read.h"

#include "base/buf.h"

#include "store/schema.h"

#include <assert.h>
#include <string.h>

enum { KEYS_MAX = 3, METRICS_MAX = 64 };
static_assert((int)RUN_COUNT <= METRICS_MAX && (int)DEVICE_COUNT <= METRICS_MAX && (int)PROCESS_COUNT <= METRICS_MAX,
	"a row of any scope fits");

/* Converts rows of a sample table to columns: first the keys, then the metrics that the table has. A file of an older wattle
 * lacks some metrics, and a file of a newer wattle has additional ones. */
struct sample_rows {
	struct run_reader *reader;
	struct run *run;
	int n_keys;
	size_t n_metrics, n_read;
	size_t metric_of[METRICS_MAX]; // metric of each of the n_read columns after the keys
	int64_t keys[KEYS_MAX];
	struct value_packer *packers; // one, or one per device
};

static const char *const key_columns[METRIC_SCOPES] = {
	[METRIC_RUN] = "t_ns",
	[METRIC_DEVICE] = "t_ns, device",
	[METRIC_PROCESS] = "t_ns, pid, start_ns",
};

/* Metrics that only GPUs report. Without a GPU these columns are null throughout. They are two thirds of a row, and reading a
 * null takes as long as reading a number. */
static bool is_of_gpus(enum metric_scope scope, size_t metric)
{
	return scope == METRIC_DEVICE &&
		((metric >= DEVICE_UTILIZATION && metric <= DEVICE_OTHERS_MIG_SHARE) ||
			(metric >= DEVICE_SM_CLOCK && metric <= DEVICE_THROTTLE_REASONS));
}

// A device kind of a later wattle may be a GPU: all columns are read.
static bool has_gpus(const struct run *run)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].kind == DOMAIN_GPU || run->devices[i].kind == DOMAIN_KINDS)
			return true;
	return false;
}

// ORDER BY the primary key is the storage order of a run file: nothing is sorted.
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

static void take_keys(struct sample_rows *rows, const struct cells *cells)
{
	cells->ops->i64s(cells->row, 0, (size_t)rows->n_keys, rows->keys);
	rows->keys[0] = run_clock_ns(rows->keys[0]);
}

// Copies the values of row n into the packer.
static int64_t *take_values(struct sample_rows *rows, const struct cells *cells, struct value_packer *packer, size_t n)
{
	int64_t *values = value_packer_row(packer, rows->n_read, n);
	if (values != NULL)
		cells->ops->i64s(cells->row, rows->n_keys, rows->n_read, values);
	return values;
}

// Packs the finished chunk; called when row n - 1 is complete.
static int pack(struct sample_rows *rows, struct value_packer *packer, const struct value_chunk ***packed, size_t n)
{
	bool ok = n % VALUE_CHUNK != 0 || value_packer_flush(packer, rows->metric_of, packed, n);
	return ok ? 0 : SQLITE_NOMEM;
}

// r: the result of reading.
static int pack_rest(struct sample_rows *rows, struct value_packer *packer, const struct value_chunk ***packed,
	size_t n, int r)
{
	bool ok = r != 0 || n % VALUE_CHUNK == 0 || value_packer_flush(packer, rows->metric_of, packed, n);
	free(packer->rows);
	return ok ? r : SQLITE_NOMEM;
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

static int take_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	struct run *run = rows->run;
	if (run->n == rows->packers->capacity)
		return 0;
	take_keys(rows, cells);
	run->t_ns[run->n] = rows->keys[0];
	if (take_values(rows, cells, rows->packers, run->n++) == NULL)
		return SQLITE_NOMEM;
	return pack(rows, rows->packers, run->packed, run->n);
}

int run_read_samples(struct run_reader *reader, struct run *run)
{
	size_t n = 0;
	int r = reader->source->read(reader, &reader->source->sample_count, run_take_sum, &n);
	if (r != 0)
		return r;
	if (!new_columns(reader->arena, n, &run->t_ns, 1))
		return SQLITE_NOMEM;
	struct value_packer packer = {.arena = reader->arena, .capacity = n};
	struct sample_rows rows = {.reader = reader, .run = run, .packers = &packer};
	r = read_samples(&rows, METRIC_RUN, take_sample);
	return pack_rest(&rows, &packer, run->packed, run->n, r);
}

static struct run_device *find_device(struct run *run, int64_t id)
{
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].id == id)
			return &run->devices[i];
	return NULL;
}

static int take_count(void *data, const struct cells *cells)
{
	const struct sample_rows *rows = data;
	const struct run_device *device = find_device(rows->run, cells_i64(cells, 0));
	if (device != NULL)
		rows->packers[device - rows->run->devices].capacity += (size_t)cells_i64(cells, 1);
	return 0;
}

// Most devices are read exactly at the times of the run's samples; then they share the run's column of times.
static bool put_time(struct arena *arena, const struct run *run, struct run_device *device, size_t capacity,
	int64_t t_ns)
{
	bool is_shared = device->t_ns == run->t_ns;
	if (is_shared && device->n < run->n && run->t_ns[device->n] == t_ns)
		return true;
	if (is_shared) {
		device->t_ns = arena_alloc(arena, capacity, sizeof(*device->t_ns));
		if (device->t_ns == NULL)
			return false;
		memcpy(device->t_ns, run->t_ns, device->n * sizeof(*device->t_ns));
	}
	device->t_ns[device->n] = t_ns;
	return true;
}

// Applies the gain of a calibrated sensor to its readings.
static void apply_gain(const struct sample_rows *rows, const struct run_device *device, int64_t *values)
{
	for (size_t i = 0; i < rows->n_read; i++) {
		size_t metric = rows->metric_of[i];
		bool is_scaled = metric == DEVICE_ENERGY || metric == DEVICE_POWER || metric == DEVICE_POWER_AVERAGE;
		if (is_scaled && value_ok(values[i]) && llabs(values[i]) < INT64_MAX / 4)
			values[i] = llround(device->gain * (double)values[i]);
	}
}

static int take_device_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	take_keys(rows, cells);
	struct run_device *device = find_device(rows->run, rows->keys[1]);
	struct value_packer *packer = device != NULL ? &rows->packers[device - rows->run->devices] : NULL;
	if (device == NULL || device->n == packer->capacity)
		return 0; // skip a row of an unknown device, keep the others
	int64_t *values = take_values(rows, cells, packer, device->n);
	if (values == NULL || !put_time(packer->arena, rows->run, device, packer->capacity, rows->keys[0]))
		return SQLITE_NOMEM;
	if (!isnan(device->gain))
		apply_gain(rows, device, values);
	device->n++;
	return pack(rows, packer, device->packed, device->n);
}

int run_read_device_samples(struct run_reader *reader, struct run *run)
{
	struct sample_rows rows = {.reader = reader,
		.run = run,
		.packers = arena_alloc(reader->arena, run->n_devices, sizeof(*rows.packers))};
	if (rows.packers == NULL)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < run->n_devices; i++) {
		run->devices[i].t_ns = run->t_ns;
		rows.packers[i].arena = reader->arena;
	}
	int r = reader->source->read(reader, &reader->source->device_counts, take_count, &rows);
	if (r == 0)
		r = read_samples(&rows, METRIC_DEVICE, take_device_sample);
	for (size_t i = 0; i < run->n_devices; i++)
		r = pack_rest(&rows, &rows.packers[i], run->devices[i].packed, run->devices[i].n, r);
	return r;
}

static int take_process_sample(void *data, const struct cells *cells)
{
	struct sample_rows *rows = data;
	struct run_process_samples *samples = &rows->run->process_samples;
	if (samples->n == rows->packers->capacity)
		return 0;
	take_keys(rows, cells);
	int64_t *const keys_of[KEYS_MAX] = {samples->t_ns, samples->pid, samples->start_ns};
	put_keys(keys_of, samples->n, rows->keys, KEYS_MAX);
	if (take_values(rows, cells, rows->packers, samples->n++) == NULL)
		return SQLITE_NOMEM;
	return pack(rows, rows->packers, samples->packed, samples->n);
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
	struct value_packer packer = {.arena = reader->arena, .capacity = n};
	struct sample_rows rows = {.reader = reader, .run = run, .packers = &packer};
	r = read_samples(&rows, METRIC_PROCESS, take_process_sample);
	return pack_rest(&rows, &packer, samples->packed, samples->n, r);
}
