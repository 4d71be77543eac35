/* GPUs, what the program told, processes. */
#include "report/page/part.h"

#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

#include <stdlib.h>

enum { METRICS_MAX = 500, PROCESSES_MAX = 200 };

static void cell_bytes(struct buf *out, int64_t bytes)
{
	part_cell(out, value_to_double(bytes, 1), human_bytes);
}

static void gpu_row(const struct part *part, const struct gpu_finding *gpu)
{
	struct buf *out = part->out;
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	part_name(out, gpu->device->name);
	buf_str(out, " <span class=\"faint small\">");
	part_name(out, gpu->device->device);
	buf_str(out, "</span></th>");
	part_cell(out, gpu->energy_j, human_energy);
	part_cell(out, gpu->mean_w, human_power);
	part_cell(out, gpu->max_w, human_power);
	part_cell(out, gpu->cap_w, human_power);
	part_cell(out, gpu->mean_utilization_percent, human_percent);
	part_cell(out, gpu->target_mean_utilization_percent, human_percent);
	cell_bytes(out, gpu->target_max_memory_bytes);
	cell_bytes(out, gpu->max_memory_bytes);
	cell_bytes(out, gpu->device->memory_total_bytes);
	part_cell(out, gpu->max_temperature_c, human_celsius);
	part_cell(out, gpu->throttled_s, human_time);
	buf_str(out, "</tr>\n");
}

void section_gpus(const struct part *part)
{
	static const struct part_column columns[] = {{"", "name"}, {"energy"}, {"mean"}, {"at most"}, {"limit"},
		{"busy"}, {"by this program"}, {"its memory"}, {"all memory"}, {"there is"}, {"hottest"},
		{"throttled"}};
	if (part->f->n_gpus == 0)
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "gpus", "GPUs");
	part_table_begin(part, "gpus-table", NULL, columns, ARRAY_SIZE(columns), part->f->n_gpus > 1);
	for (size_t i = 0; i < part->f->n_gpus; i++)
		gpu_row(part, &part->f->gpus[i]);
	part_table_end(part);
	part_paper(part, PAPER_GPUS, part->f->n_gpus);
	buf_str(part->out, "</section>\n");
}

/* ---- what the program told ---- */

static void print_four(struct buf *out, double value)
{
	human_exact(out, value, 1e7);
}

void section_metrics(const struct part *part)
{
	static const struct part_column columns[] = {{"", "name"}, {"last"}, {"min"}, {"max"}, {"mean"}, {"count"}};
	const struct findings *f = part->f;
	if (f->n_user_metrics == 0)
		return;
	buf_str(part->out, "<section class=\"half-in-print\">\n");
	part_title(part, "metrics", "What the program told");
	part_table_begin(part, "metrics-table", NULL, columns, ARRAY_SIZE(columns), true);
	for (size_t i = 0; i < f->n_user_metrics && i < METRICS_MAX; i++) {
		const struct stats *stats = &f->user_metrics[i].stats;
		buf_str(part->out, "<tr><th scope=\"row\" class=\"name\">");
		part_name(part->out, f->user_metrics[i].name);
		buf_str(part->out, "</th>");
		part_cell(part->out, stats->last, print_four);
		part_cell(part->out, stats->min, print_four);
		part_cell(part->out, stats->max, print_four);
		part_cell(part->out, stats->mean, print_four);
		part_cell_count(part->out, stats->count);
		buf_str(part->out, "</tr>\n");
	}
	part_table_end(part);
	part_paper(part, PAPER_HALF, f->n_user_metrics < METRICS_MAX ? f->n_user_metrics : METRICS_MAX);
	if (f->n_user_metrics > METRICS_MAX)
		buf_printf(part->out, "<p class=\"faint small\">… and %zu more.</p>\n",
			f->n_user_metrics - METRICS_MAX);
	buf_str(part->out, "</section>\n");
}

/* ---- processes ---- */

static int by_cpu(const void *a, const void *b)
{
	const struct run_process *x = *(const struct run_process *const *)a;
	const struct run_process *y = *(const struct run_process *const *)b;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1; // unknown is the least of all
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void process_row(const struct part *part, const struct run_process *process)
{
	struct buf *out = part->out;
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	part_name(out, process->command);
	buf_str(out, process->is_main ? " <span class=\"tag\">main</span></th>" : "</th>");
	part_cell_count(out, process->pid);
	part_cell(out, value_to_double(process->cpu_ns, 1e-9), human_time);
	cell_bytes(out, process->max_rss_bytes);
	double lived_s = value_ok(process->start_ns) && value_ok(process->end_ns)
		? (double)(process->end_ns - process->start_ns) / 1e9
		: (double)NAN;
	part_cell(out, lived_s, human_time);
	buf_str(out, "</tr>\n");
}

void section_processes(const struct part *part)
{
	static const struct part_column columns[] = {{"command", "name"}, {"pid"}, {"CPU time", NULL, "descending"},
		{"peak memory"}, {"lived"}};
	const struct run *run = part->run;
	const struct run_process **order = calloc_array(run->n_processes, sizeof(const struct run_process *));
	if (run->n_processes < 2 || order == NULL) { // one process is what stands above already
		free(order);
		return;
	}
	for (size_t i = 0; i < run->n_processes; i++)
		order[i] = &run->processes[i];
	qsort(order, run->n_processes, sizeof(const struct run_process *), by_cpu);
	buf_str(part->out, "<section class=\"half-in-print\">\n");
	part_title(part, "processes", "Processes");
	part_table_begin(part, "processes-table", NULL, columns, ARRAY_SIZE(columns), true);
	for (size_t i = 0; i < run->n_processes && i < PROCESSES_MAX; i++)
		process_row(part, order[i]);
	part_table_end(part);
	part_paper(part, PAPER_HALF, run->n_processes < PROCESSES_MAX ? run->n_processes : PROCESSES_MAX);
	if (run->n_processes > PROCESSES_MAX)
		buf_printf(part->out, "<p class=\"faint small\">… and %zu more that took less CPU time.</p>\n",
			run->n_processes - PROCESSES_MAX);
	buf_str(part->out, "</section>\n");
	free(order);
}
