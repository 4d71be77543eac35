#include "analysis/column.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "energy/slice.h"

#include <errno.h>
#include <string.h>

static double gauge(const struct run *run, enum run_metric metric, size_t sample)
{
	return value_to_double(run_value(run, metric, sample), 1);
}

static void keep_larger(double *max, double value)
{
	if (value > *max || isnan(*max))
		*max = value;
}

// The samples since the last RAM reading. Their RAM is final once the next reading is known.
struct ram_interval {
	struct ram_tracker tracker;
	size_t begin;
	double private_max_bytes[RAM_GROUPS];
};

static void begin_interval(struct ram_interval *interval, size_t begin)
{
	interval->begin = begin;
	for (size_t g = 0; g < RAM_GROUPS; g++)
		interval->private_max_bytes[g] = (double)NAN;
}

static void end_interval(const struct ram_interval *interval, size_t end, const double above_bytes[RAM_GROUPS],
	struct columns *columns)
{
	bool is_above = false;
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		is_above |= above_bytes[g] > 0;
		double private_bytes = interval->private_max_bytes[g] - above_bytes[g];
		if (private_bytes < 0)
			private_bytes = 0;
		keep_larger(&columns->private_max_bytes[g], private_bytes);
	}
	for (size_t i = interval->begin; is_above && i < end; i++) {
		double totals[RAM_GROUPS];
		for (size_t g = 0; g < RAM_GROUPS; g++)
			totals[g] = columns->ram[g][i];
		ram_carry_back(totals, above_bytes);
		for (size_t g = 0; g < RAM_GROUPS; g++)
			columns->ram[g][i] = totals[g];
	}
}

static void memory(const struct run *run, size_t i, struct ram_interval *interval, struct columns *columns)
{
	int64_t sample[RUN_COUNT];
	for (size_t m = 0; m < RUN_COUNT; m++)
		sample[m] = ram_needs((enum run_metric)m) ? run_value(run, m, i) : VALUE_MISSING;
	struct ram_values values[RAM_GROUPS];
	if (ram_next(&interval->tracker, sample, values)) {
		double above_bytes[RAM_GROUPS];
		for (size_t g = 0; g < RAM_GROUPS; g++)
			above_bytes[g] = values[g].above_bytes;
		end_interval(interval, i, above_bytes, columns);
		begin_interval(interval, i + 1);
	}
	bool is_read = interval->begin > i;
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		columns->ram[g][i] = values[g].total_bytes;
		keep_larger(is_read ? &columns->private_max_bytes[g] : &interval->private_max_bytes[g],
			values[g].private_bytes);
		keep_larger(&columns->shared_max_bytes[g], values[g].shared_bytes);
	}
}

static void memories(const struct run *run, struct columns *columns)
{
	static const double nothing_above[RAM_GROUPS] = {0};
	struct ram_interval interval;
	begin_interval(&interval, 0);
	ram_init(&interval.tracker);
	for (size_t i = 0, segment = 0; i < run->n; i++) {
		for (; segment < run->n_segments && slice_samples(run, segment).begin <= i; segment++) {
			end_interval(&interval, i, nothing_above, columns); // other processes: no value carries over
			begin_interval(&interval, i);
			ram_init(&interval.tracker);
		}
		memory(run, i, &interval, columns);
	}
	end_interval(&interval, run->n, nothing_above, columns);
}

static size_t next_known(struct run_values values, size_t from, size_t end)
{
	while (from < end && !value_ok(values_at(values, from)))
		from++;
	return from;
}

static const struct cpu_series { // counters that make a column of CPU percent
	enum run_metric counter;
	enum run_metric bound; // for the machine its idle time, otherwise the number of threads
} cpu_series[COLUMN_CPUS] = {
	[COLUMN_SYSTEM] = {RUN_SYSTEM_BUSY, RUN_SYSTEM_IDLE},
	[COLUMN_MAIN] = {RUN_MAIN_CPU, RUN_MAIN_THREADS},
	[COLUMN_DESCENDANTS] = {RUN_DESCENDANTS_CPU, RUN_DESCENDANTS_THREADS},
};

static double growth(const struct run *run, enum run_metric counter, size_t base, size_t sample)
{
	return value_to_double(run_value(run, counter, sample), 1) - value_to_double(run_value(run, counter, base), 1);
}

// The machine's counters have no timestamp of their own: busy plus idle ticks are the elapsed time.
static double machine_percent(const struct columns *columns, const struct cpu_series *series, size_t base,
	size_t sample)
{
	const struct run *run = columns->run;
	double busy = growth(run, series->counter, base, sample), all = busy + growth(run, series->bound, base, sample);
	return all > 0 ? fmax(busy / all, 0) * 100 * columns->cores : (double)NAN;
}

static double percent(const struct columns *columns, const struct cpu_series *series, size_t base, size_t sample)
{
	const struct run *run = columns->run;
	if (series->counter == RUN_SYSTEM_BUSY)
		return machine_percent(columns, series, base, sample);
	int64_t dt_ns = run->t_ns[sample] - run->t_ns[base];
	if (dt_ns <= 0)
		return (double)NAN;
	return fmax(growth(run, series->counter, base, sample), 0) / (double)dt_ns * 100;
}

/* The counters can include one tick of user time and one of system time (10 ms each) that began before the run. In a
 * run of a few milliseconds they dominate the figure. A figure above the number of threads is therefore reduced to that
 * number, by at most two ticks. */
static double short_run_percent(const struct columns *columns, const struct cpu_series *series, size_t base,
	size_t last)
{
	const struct run *run = columns->run;
	double sum = percent(columns, series, base, last), threads = (double)NAN;
	if (series->counter == RUN_SYSTEM_BUSY)
		return sum;
	for (size_t i = base; i <= last; i++)
		threads = fmax(threads, gauge(run, series->bound, i));
	double ticks = 2 * 10.0 * NS_PER_MS / (double)(run->t_ns[last] - run->t_ns[base]) * 100;
	return sum > threads * 100 ? fmax(threads * 100, sum - ticks) : sum;
}

/* The base of each reading is the latest one that is about 100 ms older. A run shorter than that has one figure, at its
 * last reading. */
static void find_bases(const struct run *run, struct slice samples, enum run_metric metric, uint32_t *out)
{
	struct run_values counter = run_column(run, metric);
	size_t base = next_known(counter, samples.begin, samples.end), last = base;
	bool any = false;
	for (size_t i = base; i < samples.end; i = next_known(counter, i + 1, samples.end)) {
		size_t next = next_known(counter, base + 1, samples.end);
		while (next < i && run->t_ns[i] - run->t_ns[next] >= WINDOW_MIN_MS * NS_PER_MS) {
			base = next;
			next = next_known(counter, base + 1, samples.end);
		}
		last = i;
		if (run->t_ns[i] - run->t_ns[base] < WINDOW_MIN_MS * NS_PER_MS)
			continue;
		out[i] = (uint32_t)base;
		any = true;
	}
	if (!any && base < last)
		out[last] = (uint32_t)base;
}

static double cpu_percent(const struct columns *columns, enum column_cpu cpu, size_t sample)
{
	const struct run *run = columns->run;
	uint32_t base = columns->cpu_base[cpu][sample];
	if (base == UINT32_MAX)
		return (double)NAN;
	bool is_short = run->t_ns[sample] - run->t_ns[base] < WINDOW_MIN_MS * NS_PER_MS;
	return is_short ? short_run_percent(columns, &cpu_series[cpu], base, sample)
			: percent(columns, &cpu_series[cpu], base, sample);
}

static size_t next_sample(const struct run_device *device, size_t row)
{
	do
		row++;
	while (row < device->n && slice_is_poll(device, row));
	return row;
}

// Most GPUs are read at each sample and at no other time.
static bool has_same_times(const struct run *run, const struct run_device *device)
{
	for (size_t i = 0; i < run->n && device->n == run->n; i++)
		if (device->t_ns[i] != run->t_ns[i] || slice_is_poll(device, i) ||
			(i > 0 && run->t_ns[i - 1] == run->t_ns[i]))
			return false;
	return device->n == run->n;
}

static int find_rows(const struct run *run, struct arena *arena, struct column_gpu *gpu)
{
	const struct run_device *device = gpu->device;
	if (has_same_times(run, device))
		return 0;
	gpu->row = arena_alloc(arena, run->n, sizeof(*gpu->row));
	if (gpu->row == NULL || device->n > UINT32_MAX)
		return -ENOMEM;
	size_t at = 0, next = next_sample(device, 0);
	for (size_t i = 0; i < run->n; i++) {
		for (; next < device->n &&
			llabs(device->t_ns[next] - run->t_ns[i]) <= llabs(device->t_ns[at] - run->t_ns[i]);
			next = next_sample(device, next))
			at = next;
		gpu->row[i] = (uint32_t)at;
	}
	return 0;
}

static int gpus(const struct run *run, struct arena *arena, struct columns *columns)
{
	columns->gpus = arena_alloc(arena, run->n_devices, sizeof(*columns->gpus));
	if (columns->gpus == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < run->n_devices; d++) {
		if (run->devices[d].kind != DOMAIN_GPU)
			continue;
		struct column_gpu *gpu = &columns->gpus[columns->n_gpus++];
		gpu->device = &run->devices[d];
		if (find_rows(run, arena, gpu) < 0)
			return -ENOMEM;
	}
	return 0;
}

// All counters of CPU time are usually read at the same samples.
static bool has_same_gaps(const struct run *run, enum run_metric a, enum run_metric b)
{
	for (size_t i = 0; i < run->n; i++)
		if (value_ok(run_value(run, a, i)) != value_ok(run_value(run, b, i)))
			return false;
	return true;
}

static bool allocate(const struct run *run, struct arena *arena, struct columns *columns)
{
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		columns->ram[g] = arena_alloc(arena, run->n, sizeof(double));
		if (columns->ram[g] == NULL)
			return false;
		columns->private_max_bytes[g] = columns->shared_max_bytes[g] = (double)NAN;
	}
	for (size_t c = 0; c < COLUMN_CPUS; c++) {
		if (c > 0 && has_same_gaps(run, cpu_series[c].counter, cpu_series[0].counter)) {
			columns->cpu_base[c] = columns->cpu_base[0];
			continue;
		}
		columns->cpu_base[c] = arena_alloc(arena, run->n, sizeof(uint32_t));
		if (columns->cpu_base[c] == NULL)
			return false;
		memset(columns->cpu_base[c], UINT8_MAX, run->n * sizeof(uint32_t));
	}
	return run->n < UINT32_MAX;
}

int columns_make(const struct run *run, struct arena *arena, struct columns *ret_columns)
{
	struct columns columns = {.run = run,
		.cores = run_metadata_double(run, META_KEY_CORES),
		.expected_cores = run_metadata_double(run, META_KEY_EXPECTED_CORES)};
	if (!allocate(run, arena, &columns))
		return -ENOMEM;
	memories(run, &columns);
	for (size_t c = 0; c < COLUMN_CPUS; c++)
		for (size_t s = 0; s < run->n_segments && (c == 0 || columns.cpu_base[c] != columns.cpu_base[0]); s++)
			find_bases(run, slice_samples(run, s), cpu_series[c].counter, columns.cpu_base[c]);
	if (gpus(run, arena, &columns) < 0)
		return -ENOMEM;
	*ret_columns = columns;
	return 0;
}

static void cpu_at(const struct columns *columns, size_t i, double *out)
{
	out[TRACKING_SYSTEM_SUM] = cpu_percent(columns, COLUMN_SYSTEM, i);
	out[TRACKING_MAIN_SUM] = cpu_percent(columns, COLUMN_MAIN, i);
	out[TRACKING_DESCENDANTS_SUM] = cpu_percent(columns, COLUMN_DESCENDANTS, i);
	out[TRACKING_COMBINED_SUM] = out[TRACKING_MAIN_SUM] + out[TRACKING_DESCENDANTS_SUM];
	out[TRACKING_SYSTEM_HARDWARE] = out[TRACKING_SYSTEM_SUM] / columns->cores;
	out[TRACKING_MAIN_HARDWARE] = out[TRACKING_MAIN_SUM] / columns->expected_cores;
	out[TRACKING_DESCENDANTS_HARDWARE] = out[TRACKING_DESCENDANTS_SUM] / columns->expected_cores;
	out[TRACKING_COMBINED_HARDWARE] = out[TRACKING_COMBINED_SUM] / columns->expected_cores;
}

static void gpus_at(const struct columns *columns, size_t i, double *out)
{
	static const struct {
		enum tracking_column_id column;
		enum device_metric metric;
	} sums[] = {
		{TRACKING_MAIN_GPU_RAM, DEVICE_MAIN_MEMORY},
		{TRACKING_COMBINED_GPU_RAM, DEVICE_TARGET_MEMORY},
		{TRACKING_SYSTEM_GPU_RAM, DEVICE_MEMORY_USED},
		{TRACKING_GPU_SUM, DEVICE_UTILIZATION},
	};
	for (size_t k = 0; k < ARRAY_SIZE(sums); k++) {
		double sum = 0;
		for (const struct column_gpu *gpu = columns->gpus; gpu < columns->gpus + columns->n_gpus; gpu++)
			sum += gpu->device->n > 0 ? value_to_double(device_value(gpu->device, sums[k].metric,
									    gpu->row != NULL ? gpu->row[i] : i),
							    1)
						  : (double)NAN;
		out[sums[k].column] = sum;
	}
	out[TRACKING_DESCENDANTS_GPU_RAM] = out[TRACKING_COMBINED_GPU_RAM] - out[TRACKING_MAIN_GPU_RAM];
	out[TRACKING_GPU_HARDWARE] = columns->n_gpus > 0 ? out[TRACKING_GPU_SUM] / (double)columns->n_gpus : 0;
}

void columns_at(const struct columns *columns, size_t i, double ret_values[TRACKING_METRICS])
{
	double *out = ret_values;
	for (size_t g = 0; g < RAM_GROUPS; g++)
		out[TRACKING_MAIN_RAM + g] = columns->ram[g][i];
	out[TRACKING_SYSTEM_RAM] = gauge(columns->run, RUN_SYSTEM_MEMORY, i);
	out[TRACKING_MAIN_THREADS] = gauge(columns->run, RUN_MAIN_THREADS, i);
	out[TRACKING_DESCENDANTS_THREADS] = gauge(columns->run, RUN_DESCENDANTS_THREADS, i);
	out[TRACKING_COMBINED_THREADS] = out[TRACKING_MAIN_THREADS] + out[TRACKING_DESCENDANTS_THREADS];
	gpus_at(columns, i, out);
	cpu_at(columns, i, out);
}
