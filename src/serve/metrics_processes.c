#include "serve/view.h"

#include "base/util.h"

#include <stdio.h>

static double power_w(const struct now_process *process)
{
	return process->power_w;
}

static double cpu_s(const struct now_process *process)
{
	return value_to_double(process->cpu_ns, 1e-9);
}

static double cpu_cores(const struct now_process *process)
{
	return process->cpu_cores;
}

static double rss_bytes(const struct now_process *process)
{
	return value_to_double(process->rss_bytes, 1);
}

static double gpu_use(const struct now_process *process)
{
	return process->gpu_percent / 100;
}

static double gpu_memory_bytes(const struct now_process *process)
{
	return value_to_double(process->gpu_memory_bytes, 1);
}

static double energy_j(const struct now_process *process)
{
	return process->energy_j;
}

static const struct {
	struct om_family family;
	double (*of)(const struct now_process *);
} rows[] = {
	{{"wattle_process_power_watts", OM_GAUGE, "watts", "Power that is attributed to the process."}, power_w},
	{{"wattle_process_energy_joules", OM_COUNTER, "joules",
		 "Energy that is attributed to the process since it was first seen, over restarts of wattle serve too."},
		energy_j},
	{{"wattle_process_cpu_seconds", OM_COUNTER, "seconds", "CPU time of the process."}, cpu_s},
	{{"wattle_process_cpu_busy_cores", OM_GAUGE, "cores",
		 "Cores that the process kept busy between the last two looks."},
		cpu_cores},
	{{"wattle_process_resident_memory_bytes", OM_GAUGE, "bytes", "Resident memory of the process."}, rss_bytes},
	{{"wattle_process_gpu_utilization_ratio", OM_GAUGE, "ratio",
		 "GPU time of the process, summed over GPUs; 1 is one GPU busy."},
		gpu_use},
	{{"wattle_process_gpu_memory_bytes", OM_GAUGE, "bytes", "GPU memory of the process, summed over GPUs."},
		gpu_memory_bytes},
};

// What has ended, or gave its row to another, has counters alone.
static bool is_told(const struct process_row *row, const struct om_family *family)
{
	return row->series.state == SERIES_SHOWN || (row->series.state == SERIES_LEAVING && family->type == OM_COUNTER);
}

void metrics_write_processes(const struct process_rows *processes, const struct metrics_options *options, struct om *om)
{
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		om_family(om, &rows[r].family);
		for (size_t i = 0; i < processes->n; i++) {
			const struct now_process *process = &processes->items[i].now;
			char pid[16];
			snprintf(pid, sizeof(pid), "%d", (int)process->pid);
			const struct om_label labels[] = {{"pid", pid}, {"command", process->command},
				{"target", options->has_target ? (process->is_target ? "true" : "false") : NULL}};
			if (is_told(&processes->items[i], &rows[r].family))
				om_value(om, labels, ARRAY_SIZE(labels), rows[r].of(process));
		}
	}
}
