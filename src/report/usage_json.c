#include "report/parts.h"

#include "analysis/facts.h"
#include "base/units.h"
#include "base/util.h"

struct unit {
	const char *name;
	double size;
};

// The unit that a fact names; gpu_tracker's default where a file has no such fact.
static struct unit unit_of(const struct run *run, const char *fact, enum unit_kind kind, const char *usual)
{
	const char *name = run_fact(run, fact);
	if (isnan(unit_size(kind, name)))
		name = usual;
	return (struct unit){name, unit_size(kind, name)};
}

static void rss(struct jsonw *j, const char *key, const struct rss_values *values, double unit)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	jsonw_key_double(j, "total_rss", values->total_bytes / unit);
	jsonw_key_double(j, "private_rss", values->private_bytes / unit);
	jsonw_key_double(j, "shared_rss", values->shared_bytes / unit);
	jsonw_end_object(j);
}

static void max_ram(struct jsonw *j, const struct resource_usage *usage, struct unit unit)
{
	jsonw_key(j, "max_ram");
	jsonw_begin_object(j);
	jsonw_key_string(j, "unit", unit.name);
	jsonw_key_double(j, "system_capacity", usage->ram_capacity_bytes / unit.size);
	jsonw_key_double(j, "system", usage->ram_system_bytes / unit.size);
	rss(j, "main", &usage->main, unit.size);
	rss(j, "descendants", &usage->descendants, unit.size);
	rss(j, "combined", &usage->combined, unit.size);
	jsonw_end_object(j);
}

static void max_gpu_ram(struct jsonw *j, const struct resource_usage *usage, struct unit unit)
{
	jsonw_key(j, "max_gpu_ram");
	jsonw_begin_object(j);
	jsonw_key_string(j, "unit", unit.name);
	jsonw_key_double(j, "system_capacity", usage->gpu_ram_capacity_bytes / unit.size);
	jsonw_key_double(j, "system", usage->gpu_ram_system_bytes / unit.size);
	jsonw_key_double(j, "main", usage->gpu_ram_main_bytes / unit.size);
	jsonw_key_double(j, "descendants", usage->gpu_ram_descendants_bytes / unit.size);
	jsonw_key_double(j, "combined", usage->gpu_ram_combined_bytes / unit.size);
	jsonw_end_object(j);
}

static void percentages(struct jsonw *j, const char *key, const struct unit_percentages *values)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	jsonw_key_double(j, "max_sum_percent", values->max_sum);
	jsonw_key_double(j, "max_hardware_percent", values->max_hardware);
	jsonw_key_double(j, "mean_sum_percent", values->mean_sum);
	jsonw_key_double(j, "mean_hardware_percent", values->mean_hardware);
	jsonw_end_object(j);
}

static void cpu_utilization(struct jsonw *j, const struct resource_usage *usage)
{
	jsonw_key(j, "cpu_utilization");
	jsonw_begin_object(j);
	jsonw_key_i64(j, "system_core_count", usage->system_core_count);
	jsonw_key_i64(j, "n_expected_cores", usage->expected_cores);
	percentages(j, "system", &usage->cpu_system);
	percentages(j, "main", &usage->cpu_main);
	percentages(j, "descendants", &usage->cpu_descendants);
	percentages(j, "combined", &usage->cpu_combined);
	jsonw_key_i64(j, "main_n_threads", usage->main_threads);
	jsonw_key_i64(j, "descendants_n_threads", usage->descendants_threads);
	jsonw_key_i64(j, "combined_n_threads", usage->combined_threads);
	jsonw_end_object(j);
}

static void gpu_utilization(struct jsonw *j, const struct resource_usage *usage)
{
	jsonw_key(j, "gpu_utilization");
	jsonw_begin_object(j);
	jsonw_key_i64(j, "system_gpu_count", usage->system_gpu_count);
	jsonw_key_i64(j, "n_expected_gpus", usage->expected_gpus);
	percentages(j, "gpu_percentages", &usage->gpu);
	jsonw_end_object(j);
}

void usage_json(struct jsonw *j, const struct run *run, const struct resource_usage *usage)
{
	struct unit time = unit_of(run, FACT_TIME_UNIT, UNIT_TIME, "hours");
	jsonw_begin_object(j);
	max_ram(j, usage, unit_of(run, FACT_RAM_UNIT, UNIT_MEMORY, "gigabytes"));
	max_gpu_ram(j, usage, unit_of(run, FACT_GPU_RAM_UNIT, UNIT_MEMORY, "gigabytes"));
	cpu_utilization(j, usage);
	gpu_utilization(j, usage);
	jsonw_key(j, "compute_time");
	jsonw_begin_object(j);
	jsonw_key_string(j, "unit", time.name);
	jsonw_key_double(j, "time", usage->compute_time_s / time.size);
	jsonw_end_object(j);
	jsonw_end_object(j);
}
