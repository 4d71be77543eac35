
#include "analysis/metadata_keys.h"
#include "analysis/run/internal.h"
#include "analysis/stats.h"
#include "base/util.h"
#include "energy/slice.h"

static struct unit_percentages percentages(const struct value_stats *sum, const struct value_stats *hardware)
{
	return (struct unit_percentages){
		.max_sum = sum->max,
		.max_hardware = hardware->max,
		.mean_sum = sum->mean,
		.mean_hardware = hardware->mean,
	};
}

static int64_t as_count(double value)
{
	return isnan(value) ? VALUE_MISSING : (int64_t)value;
}

static void cpu_usage(const struct run *run, const struct value_stats *columns, struct resource_usage *usage)
{
	const struct value_stats *c = columns;
	usage->system_core_count = run_metadata_i64(run, META_KEY_CORES);
	usage->expected_cores = run_metadata_i64(run, META_KEY_EXPECTED_CORES);
	usage->cpu_system = percentages(&c[TRACKING_SYSTEM_SUM], &c[TRACKING_SYSTEM_HARDWARE]);
	usage->cpu_main = percentages(&c[TRACKING_MAIN_SUM], &c[TRACKING_MAIN_HARDWARE]);
	usage->cpu_descendants = percentages(&c[TRACKING_DESCENDANTS_SUM], &c[TRACKING_DESCENDANTS_HARDWARE]);
	usage->cpu_combined = percentages(&c[TRACKING_COMBINED_SUM], &c[TRACKING_COMBINED_HARDWARE]);
	usage->main_threads = as_count(c[TRACKING_MAIN_THREADS].max);
	usage->descendants_threads = as_count(c[TRACKING_DESCENDANTS_THREADS].max);
	usage->combined_threads = as_count(c[TRACKING_COMBINED_THREADS].max);
}

static double max_of_sum(const struct run *run, enum run_metric a, enum run_metric b)
{
	double max = (double)NAN;
	for (size_t i = 0; i < run->n; i++)
		max = fmax(max, value_to_double(run_value(run, a, i), 1) + value_to_double(run_value(run, b, i), 1));
	return max;
}

static struct rss_values rss_values(const struct findings *findings, const struct columns *columns,
	enum ram_group group)
{
	return (struct rss_values){
		.total_bytes = findings->overall[TRACKING_MAIN_RAM + group].max,
		.private_bytes = columns->private_max_bytes[group],
		.shared_bytes = columns->shared_max_bytes[group],
	};
}

/* The kernel itself keeps the peak of resident memory (VmHWM, ru_maxrss). The excess over the highest sample occurred
 * between two samples and counts as private, like all memory that a program allocates (metric/ram.h). For a program
 * without a sample the peak is the only figure, and its shared part is unknown. */
static void add_unseen(struct rss_values *values, double peak_bytes, double highest_sample_bytes)
{
	if (isnan(values->total_bytes))
		values->total_bytes = peak_bytes;
	double unseen_bytes = peak_bytes - highest_sample_bytes;
	if (!(unseen_bytes > 0))
		return;
	values->total_bytes += unseen_bytes;
	values->private_bytes += unseen_bytes;
}

static void memory_usage(const struct findings *findings, const struct columns *c, struct resource_usage *usage)
{
	const struct run *run = findings->run;
	usage->ram_capacity_bytes = run_metadata_double(run, META_KEY_MEMORY_TOTAL);
	usage->ram_system_bytes = findings->overall[TRACKING_SYSTEM_RAM].max;
	usage->main = rss_values(findings, c, RAM_MAIN);
	usage->descendants = rss_values(findings, c, RAM_DESCENDANTS);
	usage->combined = rss_values(findings, c, RAM_COMBINED);
	add_unseen(&usage->main, value_to_double(findings->main_peak_rss_bytes, 1),
		stats_max(run_column(run, RUN_MAIN_RSS), run->n));
	add_unseen(&usage->combined, value_to_double(findings->peak_rss_bytes, 1),
		max_of_sum(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS));
}

// Without samples there is no GPU figure either, except without a GPU, where it is 0.
static double gpu_max(const struct value_stats *column, int64_t n_gpus)
{
	return n_gpus > 0 ? column->max : 0;
}

static void gpu_usage(const struct run *run, const struct value_stats *columns, struct resource_usage *usage)
{
	int64_t n_gpus = run_count_gpus(run);
	usage->system_gpu_count = run_metadata_i64(run, META_KEY_GPUS_SYSTEM);
	usage->expected_gpus = n_gpus;
	usage->gpu_ram_capacity_bytes = run_gpu_capacity_bytes(run);
	usage->gpu_ram_system_bytes = gpu_max(&columns[TRACKING_SYSTEM_GPU_RAM], n_gpus);
	usage->gpu_ram_main_bytes = gpu_max(&columns[TRACKING_MAIN_GPU_RAM], n_gpus);
	usage->gpu_ram_descendants_bytes = gpu_max(&columns[TRACKING_DESCENDANTS_GPU_RAM], n_gpus);
	usage->gpu_ram_combined_bytes = gpu_max(&columns[TRACKING_COMBINED_GPU_RAM], n_gpus);
	if (n_gpus > 0)
		usage->gpu = percentages(&columns[TRACKING_GPU_SUM], &columns[TRACKING_GPU_HARDWARE]);
}

/* If there were descendants but no sample saw one alive, their figures are unknown, not 0. Without any descendants
 * their memory is 0, even if that of the target itself could not be read. */
static void finish_descendants(const struct findings *findings, struct resource_usage *usage)
{
	if (findings->processes_seen == 1) {
		usage->descendants = (struct rss_values){0};
		usage->descendants_threads = 0;
		return;
	}
	double most = stats_max(run_column(findings->run, RUN_PROCESSES), findings->run->n);
	if (!(most <= 1) || !(findings->processes_seen > 1))
		return;
	usage->descendants = (struct rss_values){(double)NAN, (double)NAN, (double)NAN};
	usage->descendants_threads = VALUE_MISSING;
}

static void set_total(struct rss_values *values, double total_bytes)
{
	values->private_bytes += total_bytes - values->total_bytes;
	values->total_bytes = total_bytes;
}

/* Peaks that only the kernel recorded were added to main and to the target, not to descendants. Afterwards the target's
 * total must be at least each of the two, and at most their sum. */
static void finish_combined(const struct findings *findings, struct resource_usage *usage)
{
	struct rss_values *combined = &usage->combined, *descendants = &usage->descendants;
	double main_bytes = usage->main.total_bytes;
	if (isnan(combined->total_bytes) || isnan(main_bytes) || isnan(descendants->total_bytes))
		return;
	set_total(combined, fmax(combined->total_bytes, fmax(main_bytes, descendants->total_bytes)));
	if (combined->total_bytes <= main_bytes + descendants->total_bytes)
		return;
	if (findings->processes_seen == 1)
		set_total(combined, main_bytes);
	else
		set_total(descendants, combined->total_bytes - main_bytes); // a child that lived between two samples
}

void usage_make(const struct findings *findings, const struct columns *columns, struct resource_usage *ret_usage)
{
	const struct run *run = findings->run;
	*ret_usage = (struct resource_usage){.compute_time_s = run_duration_s(run)};
	memory_usage(findings, columns, ret_usage);
	cpu_usage(run, findings->overall, ret_usage);
	gpu_usage(run, findings->overall, ret_usage);
	finish_descendants(findings, ret_usage);
	finish_combined(findings, ret_usage);
}
