/* gpu_tracker's ResourceUsage and the static data of its tracking file, in the configured units. */
#include "report/fields/document.h"

#include "analysis/metadata_keys.h"
#include "base/units.h"
#include "base/util.h"

// clang-format off

static const char *unit_name(const struct object_at *at, const char *fact)
{
	return run_unit(document_of(at)->run, fact);
}

static double in_unit(const struct object_at *at, const char *fact, double value)
{
	bool is_time = strcmp(fact, META_KEY_TIME_UNIT) == 0;
	return value / unit_size(is_time ? UNIT_TIME : UNIT_MEMORY, unit_name(at, fact));
}

static const char *ram_unit(const struct object_at *at, struct buf *scratch)
{
	return unit_name(at, META_KEY_RAM_UNIT);
}

static const char *gpu_ram_unit(const struct object_at *at, struct buf *scratch)
{
	return unit_name(at, META_KEY_GPU_RAM_UNIT);
}

static const char *time_unit(const struct object_at *at, struct buf *scratch)
{
	return unit_name(at, META_KEY_TIME_UNIT);
}

static const struct resource_usage *usage(const struct object_at *at)
{
	return &findings_of(at)->usage;
}

#define IN_UNIT(name, which, member)                                                                                   \
	static double name(const struct object_at *at)                                                                 \
	{                                                                                                              \
		return in_unit(at, which, usage(at)->member);                                                          \
	}
IN_UNIT(ram_capacity, META_KEY_RAM_UNIT, ram_capacity_bytes)
IN_UNIT(ram_system, META_KEY_RAM_UNIT, ram_system_bytes)
IN_UNIT(gpu_ram_capacity, META_KEY_GPU_RAM_UNIT, gpu_ram_capacity_bytes)
IN_UNIT(gpu_ram_system, META_KEY_GPU_RAM_UNIT, gpu_ram_system_bytes)
IN_UNIT(gpu_ram_main, META_KEY_GPU_RAM_UNIT, gpu_ram_main_bytes)
IN_UNIT(gpu_ram_descendants, META_KEY_GPU_RAM_UNIT, gpu_ram_descendants_bytes)
IN_UNIT(gpu_ram_combined, META_KEY_GPU_RAM_UNIT, gpu_ram_combined_bytes)
IN_UNIT(compute_time, META_KEY_TIME_UNIT, compute_time_s)
#undef IN_UNIT

/* ---- max_ram ---- */

#define RSS(name, member)                                                                                              \
	static double name(const struct object_at *at)                                                                 \
	{                                                                                                              \
		return in_unit(at, META_KEY_RAM_UNIT, ((const struct rss_values *)at->data)->member);                                \
	}
RSS(total_rss, total_bytes)
RSS(private_rss, private_bytes)
RSS(shared_rss, shared_bytes)
#undef RSS

static const struct field rss_fields[] = {
	FIELD_NUMBER("total_rss", total_rss, "unit", "private and shared memory"),
	FIELD_NUMBER("private_rss", private_rss, "unit", "memory of one process only"),
	FIELD_NUMBER("shared_rss", shared_rss, "unit", "shared memory, counted once"),
};
static const struct object_type rss_type = OBJECT_TYPE("rss", "Memory at its largest.", rss_fields);

#define D struct document
#define U struct resource_usage
static const void *main_rss(const struct object_at *at, size_t i)
{
	return &usage(at)->main;
}

static const void *descendants_rss(const struct object_at *at, size_t i)
{
	return &usage(at)->descendants;
}

static const void *combined_rss(const struct object_at *at, size_t i)
{
	return &usage(at)->combined;
}

static const struct field max_ram_fields[] = {
	FIELD_TEXT("unit", ram_unit, NULL, "unit of these figures, --ram-unit"),
	FIELD_NUMBER("system_capacity", ram_capacity, "unit", "memory of the machine"),
	FIELD_NUMBER("system", ram_system, "unit", "largest memory in use on the machine"),
	FIELD_FOUND("main", &rss_type, main_rss, "the root process", .known = true),
	FIELD_FOUND("descendants", &rss_type, descendants_rss, "its descendants", .known = true),
	FIELD_FOUND("combined", &rss_type, combined_rss, "both together", .known = true),
};
static const struct object_type max_ram_type = OBJECT_TYPE("max_ram", "Largest memory.", max_ram_fields);

static const struct field max_gpu_ram_fields[] = {
	FIELD_TEXT("unit", gpu_ram_unit, NULL, "unit of these figures, --gpu-ram-unit"),
	FIELD_NUMBER("system_capacity", gpu_ram_capacity, "unit", "memory of all GPUs of the machine"),
	FIELD_NUMBER("system", gpu_ram_system, "unit", "largest memory in use on the measured GPUs"),
	FIELD_NUMBER("main", gpu_ram_main, "unit", "largest memory of the root process"),
	FIELD_NUMBER("descendants", gpu_ram_descendants, "unit", "largest memory of its descendants"),
	FIELD_NUMBER("combined", gpu_ram_combined, "unit", "largest memory of both together"),
};
static const struct object_type max_gpu_ram_type = OBJECT_TYPE("max_gpu_ram", "Largest GPU memory.", max_gpu_ram_fields);

/* ---- utilization ---- */

#define P struct unit_percentages
static const struct field percentages_fields[] = {
	FIELD_AS(P, "max_sum_percent", max_sum, "%", "largest sum over the units: 100 is one core or GPU"),
	FIELD_AS(P, "max_hardware_percent", max_hardware, "%", "as a share of the expected hardware"),
	FIELD_AS(P, "mean_sum_percent", mean_sum, "%", "mean of the sum"),
	FIELD_AS(P, "mean_hardware_percent", mean_hardware, "%", "as a share of the expected hardware"),
};
#undef P
static const struct object_type percentages_type = OBJECT_TYPE("percentages", "Utilization in percent.", percentages_fields);

static const struct field cpu_fields[] = {
	FIELD(U, system_core_count, NULL, "cores of the machine"),
	FIELD_AS(U, "n_expected_cores", expected_cores, NULL, "cores that the program is expected to use, --expected-cores"),
	FIELD_OBJECT(U, "system", cpu_system, &percentages_type, "the machine"),
	FIELD_OBJECT(U, "main", cpu_main, &percentages_type, "the root process"),
	FIELD_OBJECT(U, "descendants", cpu_descendants, &percentages_type, "its descendants"),
	FIELD_OBJECT(U, "combined", cpu_combined, &percentages_type, "both together"),
	FIELD_AS(U, "main_n_threads", main_threads, NULL, "most threads of the root process"),
	FIELD_AS(U, "descendants_n_threads", descendants_threads, NULL, "most threads of its descendants"),
	FIELD_AS(U, "combined_n_threads", combined_threads, NULL, "most threads of both together"),
};
static const struct object_type cpu_usage_type = OBJECT_TYPE("cpu_utilization", "Use of the cores.", cpu_fields);

static const struct field gpu_fields[] = {
	FIELD(U, system_gpu_count, NULL, "GPUs of the machine"),
	FIELD_AS(U, "n_expected_gpus", expected_gpus, NULL, "GPUs that are measured"),
	FIELD_OBJECT(U, "gpu_percentages", gpu, &percentages_type, "their utilization"),
};
static const struct object_type gpu_usage_type = OBJECT_TYPE("gpu_utilization", "Use of the GPUs.", gpu_fields);

static const struct field time_fields[] = {
	FIELD_TEXT("unit", time_unit, NULL, "unit of this figure, --time-unit"),
	FIELD_NUMBER("time", compute_time, "unit", "time from start to end"),
};
static const struct object_type time_type = OBJECT_TYPE("compute_time", "Time that the program took.", time_fields);

static const void *of_usage(const struct object_at *at, size_t i)
{
	return usage(at);
}

static const struct field resource_usage_fields[] = {
	FIELD_SELF("max_ram", &max_ram_type, "largest memory"),
	FIELD_SELF("max_gpu_ram", &max_gpu_ram_type, "largest GPU memory"),
	FIELD_FOUND("cpu_utilization", &cpu_usage_type, of_usage, "use of the cores", .known = true),
	FIELD_FOUND("gpu_utilization", &gpu_usage_type, of_usage, "use of the GPUs", .known = true),
	FIELD_SELF("compute_time", &time_type, "time that the program took"),
};
const struct object_type resource_usage_type =
	OBJECT_TYPE("resource_usage", "gpu_tracker's figures, in its units.", resource_usage_fields);

/* ---- static data of a tracking file ---- */

static int64_t core_count(const struct object_at *at)
{
	return usage(at)->system_core_count;
}

static int64_t expected_cores(const struct object_at *at)
{
	return usage(at)->expected_cores;
}

static int64_t gpu_count(const struct object_at *at)
{
	return usage(at)->system_gpu_count;
}

static int64_t expected_gpus(const struct object_at *at)
{
	return usage(at)->expected_gpus;
}

static const struct field static_data_fields[] = {
	FIELD_TEXT("ram_unit", ram_unit, NULL, "unit of memory"),
	FIELD_TEXT("gpu_ram_unit", gpu_ram_unit, NULL, "unit of GPU memory"),
	FIELD_TEXT("time_unit", time_unit, NULL, "unit of time"),
	FIELD_NUMBER("ram_system_capacity", ram_capacity, "unit", "memory of the machine"),
	FIELD_NUMBER("gpu_ram_system_capacity", gpu_ram_capacity, "unit", "memory of all GPUs of the machine"),
	FIELD_INTEGER("system_core_count", core_count, NULL, "cores of the machine"),
	FIELD_INTEGER("n_expected_cores", expected_cores, NULL, "cores that the program is expected to use"),
	FIELD_INTEGER("system_gpu_count", gpu_count, NULL, "GPUs of the machine"),
	FIELD_INTEGER("n_expected_gpus", expected_gpus, NULL, "GPUs that are measured"),
};
const struct object_type static_data_type = OBJECT_TYPE("static_data", "Static data as in gpu_tracker.", static_data_fields);
