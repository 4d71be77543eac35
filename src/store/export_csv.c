#include "store/export.h"

#include "base/arena.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

/* Merges the samples of the run and of its devices by time: one cursor per series; each row takes all series at the earliest
 * time. */

struct device_columns {
	const struct run_device *device;
	bool given[DEVICE_COUNT]; // this device has at least one value in the column
	size_t at;                // index of the next sample
};

static void find_given(struct device_columns *columns)
{
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		for (size_t i = 0; i < columns->device->n && !columns->given[m]; i++)
			columns->given[m] = value_ok(device_value(columns->device, m, i));
}

// Two devices of the same name (another GPU in an appended segment) are distinguished by their id in the file.
static bool name_is_taken(const struct run *run, const struct run_device *device)
{
	for (const struct run_device *other = run->devices; other < device; other++)
		if (strcmp(other->name, device->name) == 0)
			return true;
	return false;
}

static void put_column_name(struct buf *out, struct buf *scratch, const struct run *run,
	const struct run_device *device, const char *metric)
{
	buf_clear(scratch);
	buf_str(scratch, device->name);
	if (name_is_taken(run, device))
		buf_printf(scratch, "~%lld", (long long)device->id);
	buf_printf(scratch, ".%s", metric);
	buf_char(out, ',');
	buf_csv(out, scratch->data != NULL ? scratch->data : "");
}

static void put_header(const struct run *run, const struct device_columns *columns, struct buf *out)
{
	size_t n;
	const struct metric *metrics = metric_table(METRIC_RUN, &n);
	buf_str(out, "t_ns,timestamp");
	for (size_t m = 0; m < n; m++)
		buf_printf(out, ",%s", metrics[m].name);
	metrics = metric_table(METRIC_DEVICE, &n);
	struct buf scratch;
	buf_init(&scratch, 4096);
	for (size_t d = 0; d < run->n_devices; d++)
		for (size_t m = 0; m < n; m++)
			if (columns[d].given[m])
				put_column_name(out, &scratch, run, columns[d].device, metrics[m].name);
	buf_finish(&scratch);
	buf_char(out, '\n');
}

static void put_value(struct buf *out, int64_t value)
{
	buf_char(out, ',');
	if (value_ok(value))
		buf_i64(out, value);
}

// Writes seconds since 1970 with nine decimals as text: a double cannot hold them.
static void put_timestamp(struct buf *out, int64_t wall_ns)
{
	buf_char(out, ',');
	if (value_ok(wall_ns) && wall_ns >= 0)
		buf_printf(out, "%lld.%09lld", (long long)(wall_ns / NS_PER_S), (long long)(wall_ns % NS_PER_S));
}

// The earliest time of all cursors; false at the end of all series.
static bool next_time(const struct run *run, size_t at, const struct device_columns *columns, int64_t *ret_t_ns)
{
	bool found = at < run->n;
	int64_t t_ns = found ? run->t_ns[at] : INT64_MAX;
	for (size_t d = 0; d < run->n_devices; d++) {
		if (columns[d].at >= columns[d].device->n)
			continue;
		found = true;
		if (columns[d].device->t_ns[columns[d].at] < t_ns)
			t_ns = columns[d].device->t_ns[columns[d].at];
	}
	*ret_t_ns = t_ns;
	return found;
}

static void put_device(struct device_columns *columns, int64_t t_ns, struct buf *out)
{
	const struct run_device *device = columns->device;
	bool here = columns->at < device->n && device->t_ns[columns->at] == t_ns;
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		if (columns->given[m])
			put_value(out, here ? device_value(device, m, columns->at) : VALUE_MISSING);
	columns->at += here;
}

int export_csv(const struct run *run, struct export_out *out)
{
	struct device_columns *columns = calloc_array(run->n_devices, sizeof(*columns));
	if (columns == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < run->n_devices; d++) {
		columns[d].device = &run->devices[d];
		find_given(&columns[d]);
	}
	put_header(run, columns, &out->text);
	size_t at = 0;
	int64_t t_ns;
	while (next_time(run, at, columns, &t_ns)) {
		bool here = at < run->n && run->t_ns[at] == t_ns;
		buf_i64(&out->text, t_ns);
		put_timestamp(&out->text, run_wall_ns(run, t_ns));
		for (size_t m = 0; m < RUN_COUNT; m++)
			put_value(&out->text, here ? run_value(run, m, at) : VALUE_MISSING);
		for (size_t d = 0; d < run->n_devices; d++)
			put_device(&columns[d], t_ns, &out->text);
		buf_char(&out->text, '\n');
		at += here;
		export_out_more(out);
	}
	free(columns);
	return 0;
}
