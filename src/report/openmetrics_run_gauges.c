// What was read at each sample, of the devices and of the run, as it was stored.
#include "report/openmetrics_run_parts.h"

#include "base/util.h"

static const struct {
	struct om_family family;
	enum device_metric metric;
	double scale;
} device_rows[] = {
	{{"wattle_domain_power_limit_watts", OM_GAUGE, "watts", "Power limit in force."}, DEVICE_POWER_CAP, 1e-3},
	{{"wattle_domain_temperature_celsius", OM_GAUGE, "celsius", "Temperature of the device."}, DEVICE_TEMPERATURE,
		1},
	{{"wattle_domain_utilization_ratio", OM_GAUGE, "ratio", "Part of the time in which the device worked."},
		DEVICE_UTILIZATION, 1e-2},
	{{"wattle_domain_target_utilization_ratio", OM_GAUGE, "ratio",
		 "Part of the time in which the device worked for the target."},
		DEVICE_TARGET_UTILIZATION, 1e-2},
	{{"wattle_domain_memory_used_bytes", OM_GAUGE, "bytes", "Device memory in use."}, DEVICE_MEMORY_USED, 1},
	{{"wattle_domain_target_memory_bytes", OM_GAUGE, "bytes", "Device memory of the target."}, DEVICE_TARGET_MEMORY,
		1},
	{{"wattle_domain_clock_hertz", OM_GAUGE, "hertz", "Clock of the device's cores."}, DEVICE_SM_CLOCK, 1e6},
};

static void write_devices(struct om_run *w)
{
	for (size_t r = 0; r < ARRAY_SIZE(device_rows); r++) {
		om_run_family(w, &device_rows[r].family);
		for (size_t d = 0; d < w->run->n_devices; d++) {
			const struct run_device *device = &w->run->devices[d];
			om_run_series(w, "domain", device->name);
			om_run_label(w, "kind", domain_kind_name(device->kind));
			for (size_t i = 0; i < device->n; i++)
				om_run_put(w, device->t_ns[i],
					value_to_double(device->values[device_rows[r].metric][i],
						device_rows[r].scale));
		}
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
