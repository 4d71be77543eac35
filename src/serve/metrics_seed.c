#include "serve/view.h"

#include "base/nan_sum.h"
#include "base/util.h"

static bool counts(const struct monitor_process *process, const struct metrics_options *options)
{
	return !process->is_gone && (!options->has_target || process->is_target);
}

static double of_processes(const struct monitor_sample *now, const struct metrics_options *options,
	double (*figure)(const struct monitor_process *))
{
	double sum = (double)NAN;
	for (size_t i = 0; i < now->n_processes; i++)
		if (counts(&now->processes[i], options))
			sum = nan_sum(sum, figure(&now->processes[i]));
	return sum;
}

static double of_domains(const struct monitor_sample *now, enum domain_kind first, enum domain_kind second)
{
	double sum = (double)NAN;
	for (size_t i = 0; i < now->n_domains; i++) {
		enum domain_kind kind = now->domains[i].domain->kind;
		if (now->domains[i].in_total && (kind == first || kind == second))
			sum = nan_sum(sum, now->domains[i].power_w);
	}
	return sum;
}

static double cpu_w(const struct monitor_process *process)
{
	return nan_sum(process->cpu_w, process->dram_w);
}

static double rss_bytes(const struct monitor_process *process)
{
	return value_to_double(process->rss_bytes, 1);
}

static double gpu_memory_bytes(const struct monitor_process *process)
{
	return value_to_double(process->gpu_memory_bytes, 1);
}

/* AIPowerMeter's gauges with its own names and no labels, so that its dashboards keep working. All five are always
 * present, as in AIPowerMeter; unknown values are NaN. */
void metrics_write_seed(const struct monitor_sample *now, const struct metrics_options *options, struct om *om)
{
	const struct {
		enum om_id family;
		double value;
	} gauges[] = {
		{FAMILY_SEED_CPU_POWER, of_processes(now, options, cpu_w)},
		{FAMILY_SEED_POWER, of_domains(now, DOMAIN_PACKAGE, DOMAIN_DRAM)},
		{FAMILY_SEED_MEMORY, of_processes(now, options, rss_bytes)},
		{FAMILY_SEED_GPU_MEMORY, of_processes(now, options, gpu_memory_bytes)},
		{FAMILY_SEED_GPU_POWER, of_domains(now, DOMAIN_GPU, DOMAIN_GPU)},
	};
	for (size_t i = 0; options->seed_names && i < ARRAY_SIZE(gauges); i++) {
		om_family(om, &om_families[gauges[i].family]);
		om_value_or_nan(om, NULL, 0, gauges[i].value);
	}
}
