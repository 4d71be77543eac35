#include "store/tracking_row.h"

#include "base/units.h"
#include "base/util.h"

// gpu_tracker's names (seeds.md A3), which its analyzer looks for.
const struct tracking_column tracking_columns[TRACKING_COLUMNS] = {
	[TRACKING_MAIN_RAM] = {"main_ram"},
	[TRACKING_DESCENDANTS_RAM] = {"descendants_ram"},
	[TRACKING_COMBINED_RAM] = {"combined_ram"},
	[TRACKING_SYSTEM_RAM] = {"system_ram"},
	[TRACKING_MAIN_GPU_RAM] = {"main_gpu_ram"},
	[TRACKING_DESCENDANTS_GPU_RAM] = {"descendants_gpu_ram"},
	[TRACKING_COMBINED_GPU_RAM] = {"combined_gpu_ram"},
	[TRACKING_SYSTEM_GPU_RAM] = {"system_gpu_ram"},
	[TRACKING_GPU_SUM] = {"gpu_sum_utilization_percent"},
	[TRACKING_GPU_HARDWARE] = {"gpu_hardware_utilization_percent"},
	[TRACKING_MAIN_THREADS] = {"main_n_threads", .is_integer = true},
	[TRACKING_DESCENDANTS_THREADS] = {"descendants_n_threads", .is_integer = true},
	[TRACKING_COMBINED_THREADS] = {"combined_n_threads", .is_integer = true},
	[TRACKING_SYSTEM_SUM] = {"cpu_system_sum_utilization_percent"},
	[TRACKING_SYSTEM_HARDWARE] = {"cpu_system_hardware_utilization_percent"},
	[TRACKING_MAIN_SUM] = {"cpu_main_sum_utilization_percent"},
	[TRACKING_MAIN_HARDWARE] = {"cpu_main_hardware_utilization_percent"},
	[TRACKING_DESCENDANTS_SUM] = {"cpu_descendants_sum_utilization_percent"},
	[TRACKING_DESCENDANTS_HARDWARE] = {"cpu_descendants_hardware_utilization_percent"},
	[TRACKING_COMBINED_SUM] = {"cpu_combined_sum_utilization_percent"},
	[TRACKING_COMBINED_HARDWARE] = {"cpu_combined_hardware_utilization_percent"},
	[TRACKING_TIMESTAMP] = {"timestamp"},
};

void tracking_gpus_add(struct tracking_gpus *gpus, const int64_t *device_values)
{
	gpus->n++;
	gpus->main_bytes += value_to_double(device_values[DEVICE_MAIN_MEMORY], 1);
	gpus->target_bytes += value_to_double(device_values[DEVICE_TARGET_MEMORY], 1);
	gpus->used_bytes += value_to_double(device_values[DEVICE_MEMORY_USED], 1);
	gpus->utilization_percent += value_to_double(device_values[DEVICE_UTILIZATION], 1);
}

void tracking_rows_init(struct tracking_rows *rows, const struct tracking_facts *facts)
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
	// None measured is 0 where there is none, and unknown where there is one.
	bool known = (int64_t)gpus->n == rows->n_gpus_expected && (gpus->n > 0 || rows->n_gpus_system == 0);
	double unknown = known ? 0 : (double)NAN; // a term that makes the sum unknown
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

// How far the counter came since its last known value; NaN without one, or when it went back.
static double advance(struct tracking_counter *counter, int64_t t_ns, int64_t value, double *ret_dt_ns)
{
	if (!value_ok(value))
		return (double)NAN;
	struct tracking_counter last = *counter;
	*counter = (struct tracking_counter){true, t_ns, value, counter->percent};
	if (!last.known || value < last.value || t_ns <= last.t_ns)
		return (double)NAN;
	*ret_dt_ns = (double)(t_ns - last.t_ns);
	return (double)(value - last.value);
}

/* The kernel shows CPU time in ticks of 10 ms, and the last sample of a run may follow the one before at once: a
 * difference over less than this says nothing, and the percentage before still holds. */
static const int64_t percent_dt_min_ns = 50 * NS_PER_MS;

static double percent_of_a_core(struct tracking_counter *counter, int64_t t_ns, int64_t value)
{
	bool too_soon = counter->known && t_ns - counter->t_ns < percent_dt_min_ns && value >= counter->value;
	if (value_ok(value) && too_soon && !isnan(counter->percent))
		return counter->percent;
	double dt_ns = (double)NAN;
	double cpu_ns = advance(counter, t_ns, value, &dt_ns);
	double percent = 100 * cpu_ns / dt_ns;
	if (value_ok(value))
		counter->percent = percent;
	return percent;
}

/* Share of the machine, in percent. /proc/stat counts in ticks of 10 ms: samples closer than that may see nothing at
 * all, and then the value before still holds. */
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

static void put_cpu(struct tracking_rows *rows, int64_t t_ns, const int64_t *v, struct tracking_row *row)
{
	double hardware = percent_of_the_machine(rows, t_ns, v[RUN_SYSTEM_BUSY], v[RUN_SYSTEM_IDLE]);
	row->values[TRACKING_SYSTEM_SUM] = hardware * value_to_double(rows->n_cores, 1);
	row->values[TRACKING_SYSTEM_HARDWARE] = hardware;
	double main = percent_of_a_core(&rows->main, t_ns, v[RUN_MAIN_CPU]);
	double descendants = percent_of_a_core(&rows->descendants, t_ns, v[RUN_DESCENDANTS_CPU]);
	put_share(rows, row, TRACKING_MAIN_SUM, main);
	put_share(rows, row, TRACKING_DESCENDANTS_SUM, descendants);
	put_share(rows, row, TRACKING_COMBINED_SUM, main + descendants);
}

// The mean since the start, when the counters of the target were 0.
static void put_cpu_since_start(const struct tracking_rows *rows, int64_t t_ns, const int64_t *v,
	struct tracking_row *row)
{
	double dt_ns = t_ns > rows->anchor_mono_ns ? (double)(t_ns - rows->anchor_mono_ns) : (double)NAN;
	double main = 100 * value_to_double(v[RUN_MAIN_CPU], 1) / dt_ns;
	double descendants = 100 * value_to_double(v[RUN_DESCENDANTS_CPU], 1) / dt_ns;
	put_share(rows, row, TRACKING_MAIN_SUM, main);
	put_share(rows, row, TRACKING_DESCENDANTS_SUM, descendants);
	put_share(rows, row, TRACKING_COMBINED_SUM, main + descendants);
}

bool tracking_rows_next(struct tracking_rows *rows, int64_t t_ns, const int64_t *run_values,
	const struct tracking_gpus *gpus, struct tracking_row *ret_row)
{
	struct tracking_row row;
	put_ram(rows, run_values, &row);
	put_gpus(rows, gpus, &row);
	put_threads(run_values, &row);
	put_cpu(rows, t_ns, run_values, &row);
	// Exact in integers, rounded once: a double of seconds since 1970 resolves about a quarter of a microsecond.
	row.values[TRACKING_TIMESTAMP] = (double)(rows->anchor_wall_ns + (t_ns - rows->anchor_mono_ns)) / 1e9;
	if (rows->has_previous) {
		rows->has_only_row = false;
		*ret_row = row;
		return true;
	}
	put_cpu_since_start(rows, t_ns, run_values, &row);
	rows->only_row = row;
	rows->has_only_row = rows->has_previous = true;
	return false;
}

bool tracking_rows_last(struct tracking_rows *rows, struct tracking_row *ret_row)
{
	if (!rows->has_only_row)
		return false;
	rows->has_only_row = false;
	*ret_row = rows->only_row;
	return true;
}
