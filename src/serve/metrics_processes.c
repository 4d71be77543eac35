#include "serve/metrics.h"

#include "base/util.h"

#include <stdio.h>

/* Each process is a series that ends with it, and a scraper keeps them all: only as many as were asked for are told,
 * without those that rest. */
static bool is_worth_telling(const struct now_process *process, const struct ended_list *ended)
{
	return !process->is_gone && !ended_has(ended, process) &&
		(process->power_w > 0 || process->cpu_cores > 0 || process->gpu_percent > 0 ||
			process->gpu_memory_bytes > 0);
}

static int by_rank(const void *left, const void *right)
{
	return now_compare_use(*(const struct now_process *const *)left, *(const struct now_process *const *)right);
}

// And those that have ended and nobody has scraped since: of them there are counters alone. NULL: no memory. The caller frees.
static const struct now_process **choose(const struct now *now, const struct ended_list *ended, size_t most,
	size_t *ret_n)
{
	const struct now_process **chosen = calloc_array(now->n_processes + ended->n, sizeof(*chosen));
	size_t n = 0;
	for (size_t i = 0; chosen != NULL && i < now->n_processes; i++)
		if (is_worth_telling(&now->processes[i], ended))
			chosen[n++] = &now->processes[i];
	if (n > 1)
		qsort(chosen, n, sizeof(*chosen), by_rank);
	n = n < most ? n : most;
	for (size_t i = 0; chosen != NULL && i < ended->n; i++)
		chosen[n++] = &ended->items[i].now;
	*ret_n = n;
	return chosen;
}

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
		 "Energy that is attributed to the process since wattle serve first saw it."},
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

void metrics_write_processes(const struct now *now, const struct ended_list *ended,
	const struct metrics_options *options, struct om *om)
{
	size_t n;
	const struct now_process **chosen = options->most_processes > 0
		? choose(now, ended, options->most_processes, &n)
		: NULL;
	for (size_t r = 0; chosen != NULL && r < ARRAY_SIZE(rows); r++) {
		om_family(om, &rows[r].family);
		for (size_t i = 0; i < n; i++) {
			char pid[16];
			snprintf(pid, sizeof(pid), "%d", (int)chosen[i]->pid);
			const struct om_label labels[] = {{"pid", pid}, {"command", chosen[i]->command},
				{"target", options->has_target ? (chosen[i]->is_target ? "true" : "false") : NULL}};
			om_value(om, labels, ARRAY_SIZE(labels), rows[r].of(chosen[i]));
		}
	}
	free(chosen);
}
