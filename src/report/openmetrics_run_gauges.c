// What was read at each sample, of the devices and of the run, as it was stored.
#include "report/openmetrics_run_parts.h"

#include "base/util.h"

static void write_device(struct om_run *w, const struct run_device *device, size_t metric, double scale)
{
	om_run_series(w, "domain", device->name);
	om_run_label(w, "kind", domain_kind_name(device->kind));
	for (size_t i = 0; i < device->n; i++)
		om_run_put(w, device->t_ns[i], value_to_double(device->values[metric][i], scale));
}

static void write_devices(struct om_run *w)
{
	size_t n;
	const struct metric *metrics = metric_table(METRIC_DEVICE, &n);
	for (size_t m = 0; m < n; m++) {
		if (metrics[m].family.name == NULL)
			continue;
		struct om_family family = om_family_of(&metrics[m]);
		om_run_family(w, &family);
		for (size_t d = 0; d < w->run->n_devices; d++)
			write_device(w, &w->run->devices[d], m, metrics[m].family.scale);
	}
}

static const struct {
	struct om_family family;
	double scale;
	enum run_metric metrics[2]; // whose sum it is
	size_t n_metrics;
} run_rows[] = {
	{{"wattle_target_cpu_seconds", OM_COUNTER, "seconds",
		 "CPU time of the target, of processes that have ended too."},
		1e-9, {RUN_MAIN_CPU, RUN_DESCENDANTS_CPU}, 2},
	{{"wattle_target_resident_memory_bytes", OM_GAUGE, "bytes",
		 "Resident memory summed over the target's processes."},
		1, {RUN_MAIN_RSS, RUN_DESCENDANTS_RSS}, 2},
	{{"wattle_target_proportional_memory_bytes", OM_GAUGE, "bytes",
		 "Proportional set size of the target, where it was read."},
		1, {RUN_MAIN_PSS, RUN_DESCENDANTS_PSS}, 2},
	{{"wattle_target_processes", OM_GAUGE, NULL, "Living processes of the target."}, 1, {RUN_PROCESSES}, 1},
	{{"wattle_target_threads", OM_GAUGE, NULL, "Threads of the target."}, 1,
		{RUN_MAIN_THREADS, RUN_DESCENDANTS_THREADS}, 2},
	{{"wattle_cpu_busy_seconds", OM_COUNTER, "seconds", "Busy CPU time of the machine, all cores."}, 1e-9,
		{RUN_SYSTEM_BUSY}, 1},
	{{"wattle_cpu_idle_seconds", OM_COUNTER, "seconds", "Idle CPU time of the machine, all cores."}, 1e-9,
		{RUN_SYSTEM_IDLE}, 1},
	{{"wattle_memory_used_bytes", OM_GAUGE, "bytes", "Memory in use: total less available."}, 1,
		{RUN_SYSTEM_MEMORY}, 1},
	{{"process_cpu_seconds", OM_COUNTER, "seconds", "CPU time of wattle itself."}, 1e-9, {RUN_SELF_CPU}, 1},
	{{"process_resident_memory_bytes", OM_GAUGE, "bytes", "Resident memory of wattle itself."}, 1, {RUN_SELF_RSS},
		1},
};

static double value_at(const struct run *run, size_t row, size_t sample)
{
	double sum = 0;
	for (size_t i = 0; i < run_rows[row].n_metrics; i++)
		sum += value_to_double(run->values[run_rows[row].metrics[i]][sample], run_rows[row].scale);
	return sum;
}

void om_run_gauges(struct om_run *w)
{
	write_devices(w);
	for (size_t r = 0; r < ARRAY_SIZE(run_rows); r++) {
		om_run_family(w, &run_rows[r].family);
		om_run_series(w, NULL, NULL);
		for (size_t i = 0; i < w->run->n; i++)
			om_run_put(w, w->run->t_ns[i], value_at(w->run, r, i));
	}
}
