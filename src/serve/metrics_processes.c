#include "serve/view.h"

#include "base/util.h"

#include <stdio.h>

static double power_w(const struct monitor_process *process)
{
	return process->power_w;
}

static double cpu_s(const struct monitor_process *process)
{
	return value_to_double(process->cpu_ns, 1e-9);
}

static double cpu_cores(const struct monitor_process *process)
{
	return process->cpu_cores;
}

static double rss_bytes(const struct monitor_process *process)
{
	return value_to_double(process->rss_bytes, 1);
}

static double gpu_use(const struct monitor_process *process)
{
	return process->gpu_percent / 100;
}

static double gpu_memory_bytes(const struct monitor_process *process)
{
	return value_to_double(process->gpu_memory_bytes, 1);
}

static double energy_j(const struct monitor_process *process)
{
	return process->energy_j;
}

static const struct {
	enum om_id family;
	double (*of)(const struct monitor_process *);
} rows[] = {
	{FAMILY_PROCESS_POWER, power_w},
	{FAMILY_PROCESS_ENERGY, energy_j},
	{FAMILY_PROCESS_CPU, cpu_s},
	{FAMILY_PROCESS_CPU_BUSY_CORES, cpu_cores},
	{FAMILY_PROCESS_MEMORY, rss_bytes},
	{FAMILY_PROCESS_GPU, gpu_use},
	{FAMILY_PROCESS_GPU_MEMORY, gpu_memory_bytes},
};

// Processes that have ended or lost their row export counters only.
static bool is_told(const struct process_row *row, const struct om_family *family)
{
	return row->series.state == SERIES_SHOWN || (row->series.state == SERIES_LEAVING && family->type == OM_COUNTER);
}

void metrics_write_processes(const struct process_rows *processes, const struct metrics_options *options, struct om *om)
{
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		om_family(om, &om_families[rows[r].family]);
		for (size_t i = 0; i < processes->n; i++) {
			const struct monitor_process *process = &processes->items[i].now;
			char pid[16];
			snprintf(pid, sizeof(pid), "%d", (int)process->pid);
			const struct om_label labels[] = {{"pid", pid}, {"command", process->command},
				{"target", options->has_target ? (process->is_target ? "true" : "false") : NULL}};
			if (is_told(&processes->items[i], &om_families[rows[r].family]))
				om_value(om, labels, ARRAY_SIZE(labels), rows[r].of(process));
		}
	}
}
