#include "store/tracking.h"

#include "base/units.h"
#include "base/util.h"

#include <assert.h>

void tracking_metadata_capacity(struct tracking_metadata *facts, double ram_bytes, double gpu_ram_bytes)
{
	facts->ram_system_capacity = ram_bytes / unit_size(UNIT_MEMORY, facts->ram_unit);
	facts->gpu_ram_system_capacity = gpu_ram_bytes / unit_size(UNIT_MEMORY, facts->gpu_ram_unit);
}

static struct tracking_field integer(const char *name, int64_t value)
{
	return (struct tracking_field){.name = name, .number = value_to_double(value, 1), .is_integer = true};
}

void tracking_statics(const struct tracking_metadata *facts, struct tracking_field ret_fields[TRACKING_STATICS])
{
	const struct tracking_field fields[TRACKING_STATICS] = {
		{.name = "ram_unit", .text = facts->ram_unit},
		{.name = "gpu_ram_unit", .text = facts->gpu_ram_unit},
		{.name = "time_unit", .text = facts->time_unit},
		{.name = "ram_system_capacity", .number = facts->ram_system_capacity},
		{.name = "gpu_ram_system_capacity", .number = facts->gpu_ram_system_capacity},
		integer("system_core_count", facts->system_core_count),
		integer("n_expected_cores", facts->n_expected_cores),
		integer("system_gpu_count", facts->system_gpu_count),
		integer("n_expected_gpus", facts->n_expected_gpus),
	};
	memcpy(ret_fields, fields, sizeof(fields));
}

void tracking_gpus_add(struct tracking_gpus *gpus, const int64_t *device_values)
{
	gpus->n++;
	gpus->main_bytes += value_to_double(device_values[DEVICE_MAIN_MEMORY], 1);
	gpus->target_bytes += value_to_double(device_values[DEVICE_TARGET_MEMORY], 1);
	gpus->used_bytes += value_to_double(device_values[DEVICE_MEMORY_USED], 1);
	gpus->utilization_percent += value_to_double(device_values[DEVICE_UTILIZATION], 1);
}

void tracking_rows_init(struct tracking_rows *rows, const struct tracking_metadata *facts)
{
	*rows = (struct tracking_rows){
		.ram_unit_bytes = unit_size(UNIT_MEMORY, facts->ram_unit),
		.gpu_ram_unit_bytes = unit_size(UNIT_MEMORY, facts->gpu_ram_unit),
		.n_cores = facts->system_core_count,
		.n_expected_cores = facts->n_expected_cores,
		.n_gpus_system = facts->system_gpu_count,
		.n_gpus_expected = facts->n_expected_gpus,
	};
	tracking_rows_start(rows, 0, 0);
}

void tracking_rows_start(struct tracking_rows *rows, int64_t anchor_mono_ns, int64_t anchor_wall_ns)
{
	rows->anchor_mono_ns = anchor_mono_ns;
	rows->anchor_wall_ns = anchor_wall_ns;
	rows->main = rows->descendants = rows->busy = rows->idle = (struct tracking_counter){.percent = (double)NAN};
	rows->system_percent = (double)NAN;
	ram_init(&rows->ram);
	rows->has_only_row = rows->has_previous = false;
	rows->n_held = rows->n_ready = 0;
}

static int64_t add(int64_t a, int64_t b)
{
	return value_ok(a) && value_ok(b) ? a + b : VALUE_MISSING;
}

/* Memory: main, descendants, combined */

static void put_ram(struct tracking_rows *rows, const int64_t *v, struct tracking_row *row)
{
	struct ram_values values[RAM_GROUPS];
	ram_next(&rows->ram, v, values);
	for (size_t g = 0; g < RAM_GROUPS; g++)
		row->values[TRACKING_MAIN_RAM + g] = values[g].total_bytes / rows->ram_unit_bytes;
	row->values[TRACKING_SYSTEM_RAM] = value_to_double(v[RUN_SYSTEM_MEMORY], 1) / rows->ram_unit_bytes;
}

static void put_gpus(const struct tracking_rows *rows, const struct tracking_gpus *gpus, struct tracking_row *row)
{
	// With no measured GPU, the value is 0 on a machine without GPUs and unknown on a machine with GPUs.
	bool known = (int64_t)gpus->n == rows->n_gpus_expected && (gpus->n > 0 || rows->n_gpus_system == 0);
	double unknown = known ? 0 : (double)NAN; // added to the sum, so that an unknown part makes it NaN
	double unit_bytes = rows->gpu_ram_unit_bytes;
	row->values[TRACKING_MAIN_GPU_RAM] = gpus->main_bytes / unit_bytes + unknown;
	row->values[TRACKING_DESCENDANTS_GPU_RAM] = (gpus->target_bytes - gpus->main_bytes) / unit_bytes + unknown;
	row->values[TRACKING_COMBINED_GPU_RAM] = gpus->target_bytes / unit_bytes + unknown;
	row->values[TRACKING_SYSTEM_GPU_RAM] = gpus->used_bytes / unit_bytes + unknown;
	row->values[TRACKING_GPU_SUM] = gpus->utilization_percent + unknown;
	row->values[TRACKING_GPU_HARDWARE] = gpus->n > 0 ? row->values[TRACKING_GPU_SUM] / (double)gpus->n : unknown;
}

static void put_threads(const int64_t *v, struct tracking_row *row)
{
	row->values[TRACKING_MAIN_THREADS] = value_to_double(v[RUN_MAIN_THREADS], 1);
	row->values[TRACKING_DESCENDANTS_THREADS] = value_to_double(v[RUN_DESCENDANTS_THREADS], 1);
	row->values[TRACKING_COMBINED_THREADS] = value_to_double(add(v[RUN_MAIN_THREADS], v[RUN_DESCENDANTS_THREADS]),
		1);
}

/* CPU */

// Increase of the counter since its last known value; NaN without one, or if the counter decreased.
static double advance(struct tracking_counter *counter, int64_t t_ns, int64_t value, double *ret_dt_ns)
{
	if (!value_ok(value))
		return (double)NAN;
	struct tracking_counter last = *counter;
	*counter = (struct tracking_counter){true, last.known, t_ns, value, counter->percent};
	if (!last.known || value < last.value || t_ns <= last.t_ns)
		return (double)NAN;
	*ret_dt_ns = (double)(t_ns - last.t_ns);
	return (double)(value - last.value);
}

/* The kernel counts CPU time in ticks of 10 ms, and the last sample of a run may follow the previous one immediately. Over a
 * shorter interval than this, the previous percentage is reused. */
static const int64_t percent_dt_min_ns = 50 * NS_PER_MS;

static double percent_of_a_core(struct tracking_counter *counter, int64_t t_ns, int64_t value)
{
	if (!value_ok(value))
		return (double)NAN;
	if (counter->known && t_ns - counter->t_ns < percent_dt_min_ns && value >= counter->value)
		return counter->percent;
	double dt_ns = (double)NAN;
	double cpu_ns = advance(counter, t_ns, value, &dt_ns);
	counter->percent = 100 * cpu_ns / dt_ns;
	return counter->percent;
}

/* CPU share of the machine in percent. /proc/stat counts in ticks of 10 ms: between closer samples it may not change, and the
 * previous value is reused. */
static double percent_of_the_machine(struct tracking_rows *rows, int64_t t_ns, int64_t busy_ns, int64_t idle_ns)
{
	if (!value_ok(busy_ns) || !value_ok(idle_ns))
		return (double)NAN;
	if (rows->busy.known && busy_ns == rows->busy.value && idle_ns == rows->idle.value)
		return rows->system_percent;
	double dt_ns;
	double busy = advance(&rows->busy, t_ns, busy_ns, &dt_ns);
	double idle = advance(&rows->idle, t_ns, idle_ns, &dt_ns);
	rows->system_percent = 100 * busy / (busy + idle);
	return rows->system_percent;
}

static void put_share(const struct tracking_rows *rows, struct tracking_row *row, enum tracking_column_id sum,
	double percent)
{
	row->values[sum] = percent;
	row->values[sum + 1] = percent / value_to_double(rows->n_expected_cores, 1);
}

struct cpu_percents {
	double system, main, descendants; // system: percent of the whole machine; main, descendants: percent of one core
};

static void put_cpu(const struct tracking_rows *rows, struct cpu_percents percents, struct tracking_row *row)
{
	row->values[TRACKING_SYSTEM_SUM] = percents.system * value_to_double(rows->n_cores, 1);
	row->values[TRACKING_SYSTEM_HARDWARE] = percents.system;
	put_share(rows, row, TRACKING_MAIN_SUM, percents.main);
	put_share(rows, row, TRACKING_DESCENDANTS_SUM, percents.descendants);
	put_share(rows, row, TRACKING_COMBINED_SUM, percents.main + percents.descendants);
}

static struct cpu_percents next_percents(struct tracking_rows *rows, int64_t t_ns, const int64_t *v)
{
	rows->last_ns = t_ns;
	rows->last_main_ns = v[RUN_MAIN_CPU];
	rows->last_descendants_ns = v[RUN_DESCENDANTS_CPU];
	return (struct cpu_percents){
		.system = percent_of_the_machine(rows, t_ns, v[RUN_SYSTEM_BUSY], v[RUN_SYSTEM_IDLE]),
		.main = percent_of_a_core(&rows->main, t_ns, v[RUN_MAIN_CPU]),
		.descendants = percent_of_a_core(&rows->descendants, t_ns, v[RUN_DESCENDANTS_CPU]),
	};
}

/* Mean over the recording, for rows of a recording that ended before a percentage was known. For a single sample: the mean
 * since the start, when the counters of the target were 0. */
static double mean_percent(const struct tracking_rows *rows, const struct tracking_counter *counter, int64_t value)
{
	bool has_first = counter->known && rows->last_ns > counter->t_ns;
	int64_t first_ns = has_first ? counter->t_ns : rows->anchor_mono_ns;
	double cpu_ns = value_to_double(value, 1) - (has_first ? (double)counter->value : 0);
	return rows->last_ns > first_ns ? 100 * cpu_ns / (double)(rows->last_ns - first_ns) : (double)NAN;
}

/* Waiting rows */

static bool waits(const struct tracking_counter *counter)
{
	return counter->known && !counter->compared;
}

static double known_or(double value, double otherwise)
{
	return isnan(value) ? otherwise : value;
}

static void release(struct tracking_rows *rows, struct cpu_percents percents)
{
	for (size_t i = rows->n_ready; i < rows->n_held; i++) {
		const double *values = rows->held[i].values;
		const struct cpu_percents filled = {
			.system = known_or(values[TRACKING_SYSTEM_HARDWARE], percents.system),
			.main = known_or(values[TRACKING_MAIN_SUM], percents.main),
			.descendants = known_or(values[TRACKING_DESCENDANTS_SUM], percents.descendants),
		};
		put_cpu(rows, filled, &rows->held[i]);
	}
	rows->n_ready = rows->n_held;
}

// Rows that wait longer than the buffer allows, because the counters do not change, are released without percentages.
static void hold(struct tracking_rows *rows, const struct tracking_row *row)
{
	assert(rows->n_held < TRACKING_HELD_MAX); // the caller takes all ready rows
	rows->held[rows->n_held++] = *row;
	if (rows->n_held == TRACKING_HELD_MAX && rows->n_ready == 0)
		rows->n_ready = 1;
}

void tracking_rows_feed(struct tracking_rows *rows, int64_t t_ns, const int64_t *run_values,
	const struct tracking_gpus *gpus, bool is_row)
{
	struct tracking_row row;
	put_ram(rows, run_values, &row);
	put_gpus(rows, gpus, &row);
	put_threads(run_values, &row);
	struct cpu_percents percents = next_percents(rows, t_ns, run_values);
	put_cpu(rows, percents, &row);
	// Exact in integers, rounded once: a double of seconds since 1970 has a resolution of about 0.25 µs.
	row.values[TRACKING_TIMESTAMP] = (double)(rows->anchor_wall_ns + (t_ns - rows->anchor_mono_ns)) / 1e9;
	if (!rows->has_previous)
		rows->only_row = row;
	else if (is_row)
		hold(rows, &row);
	rows->has_only_row = !rows->has_previous;
	rows->has_previous = true;
	if (!waits(&rows->busy) && !waits(&rows->main) && !waits(&rows->descendants))
		release(rows, percents);
}

void tracking_rows_end(struct tracking_rows *rows)
{
	if (rows->has_only_row)
		hold(rows, &rows->only_row);
	rows->has_only_row = false;
	const struct cpu_percents means = {
		.system = rows->system_percent,
		.main = mean_percent(rows, &rows->main, rows->last_main_ns),
		.descendants = mean_percent(rows, &rows->descendants, rows->last_descendants_ns),
	};
	release(rows, means);
}

bool tracking_rows_take(struct tracking_rows *rows, struct tracking_row *ret_row)
{
	if (rows->n_ready == 0)
		return false;
	*ret_row = rows->held[0];
	rows->n_held--;
	rows->n_ready--;
	memmove(&rows->held[0], &rows->held[1], rows->n_held * sizeof(rows->held[0]));
	return true;
}
