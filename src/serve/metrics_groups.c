#include "serve/view.h"

#include "base/util.h"

#include <assert.h>

/* Jobs and cgroups. Energy attributed to processes is counted in exactly one row: the job's own, "other" (jobs without a
 * row) or "none" (processes outside all jobs; no such processes exist for cgroups). */

enum { LABELS_MAX = 4 };

static const char *const resources[MONITOR_RESOURCES] =
	{[MONITOR_CPU] = "cpu", [MONITOR_DRAM] = "dram", [MONITOR_GPU] = "gpu"};

static double power_w(const struct monitor_group *group)
{
	return group->power_w;
}

static double cpu_cores(const struct monitor_group *group)
{
	return group->cpu_cores;
}

static double processes(const struct monitor_group *group)
{
	return (double)group->processes;
}

static double rss_bytes(const struct monitor_group *group)
{
	return value_to_double(group->rss_bytes, 1);
}

static double gpu_use(const struct monitor_group *group)
{
	return group->gpu_percent / 100;
}

static double gpu_memory_bytes(const struct monitor_group *group)
{
	return value_to_double(group->gpu_memory_bytes, 1);
}

static const struct {
	const char *label;
	enum om_id energy, cpu;
} families[MONITOR_GROUPINGS] = {
	[MONITOR_JOBS] = {"jobid", FAMILY_JOB_ENERGY, FAMILY_JOB_CPU},
	[MONITOR_CGROUPS] = {"cgroup", FAMILY_CGROUP_ENERGY, FAMILY_CGROUP_CPU},
};

static const struct {
	enum om_id families[MONITOR_GROUPINGS];
	double (*of)(const struct monitor_group *);
} gauges[] = {
	{{FAMILY_JOB_POWER, FAMILY_CGROUP_POWER}, power_w},
	{{FAMILY_JOB_CPU_BUSY_CORES, FAMILY_CGROUP_CPU_BUSY_CORES}, cpu_cores},
	{{FAMILY_JOB_PROCESSES, FAMILY_CGROUP_PROCESSES}, processes},
	{{FAMILY_JOB_MEMORY, FAMILY_CGROUP_MEMORY}, rss_bytes},
	{{FAMILY_JOB_GPU, FAMILY_CGROUP_GPU}, gpu_use},
	{{FAMILY_JOB_GPU_MEMORY, FAMILY_CGROUP_GPU_MEMORY}, gpu_memory_bytes},
};
static_assert(MONITOR_JOBS == 0 && MONITOR_CGROUPS == 1, "the families of a gauge are in the order of this enum");

static size_t put_labels(const struct group_rows *table, const struct group_row *row, struct om_label *labels)
{
	labels[0] = (struct om_label){families[table->grouping].label, row->name};
	labels[1] = (struct om_label){"user", row->user};
	return 2;
}

static bool uses(const struct monitor_sample *now, const double *energy_j, int resource)
{
	return now->exists[resource] && (resource != MONITOR_GPU || energy_j[resource] > 0);
}

static void write_energy_of(const struct monitor_sample *now, struct om *om, struct om_label *labels, size_t n,
	const double *energy_j)
{
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		labels[n] = (struct om_label){"resource", resources[r]};
		if (uses(now, energy_j, r)) // skip zero rows: most jobs use no GPU
			om_value(om, labels, n + 1, energy_j[r]);
	}
}

static void write_energy(const struct monitor_sample *now, const struct group_rows *table, struct om *om)
{
	struct om_label labels[LABELS_MAX] = {{.name = families[table->grouping].label}};
	double other_j[MONITOR_RESOURCES];
	bool is_jobs = table->grouping == MONITOR_JOBS;
	om_family(om, &om_families[families[table->grouping].energy]);
	for (size_t i = 0; i < table->n; i++)
		if (group_row_is_shown(table, &table->items[i]))
			write_energy_of(now, om, labels, put_labels(table, &table->items[i], labels),
				table->items[i].energy_j);
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		other_j[r] = table->other_j[r] + (is_jobs ? 0 : table->rest_j[r]);
	labels[0].value = "other";
	write_energy_of(now, om, labels, 1, other_j);
	labels[0].value = "none";
	if (is_jobs)
		write_energy_of(now, om, labels, 1, table->rest_j);
}

static void write_cpu(const struct group_rows *table, struct om *om)
{
	struct om_label labels[LABELS_MAX] = {{.name = families[table->grouping].label}};
	bool is_jobs = table->grouping == MONITOR_JOBS;
	om_family(om, &om_families[families[table->grouping].cpu]);
	for (size_t i = 0; i < table->n; i++)
		if (group_row_is_shown(table, &table->items[i]))
			om_value(om, labels, put_labels(table, &table->items[i], labels), table->items[i].cpu_s);
	labels[0].value = "other";
	om_value(om, labels, 1, table->other_cpu_s + (is_jobs ? 0 : table->rest_cpu_s));
	labels[0].value = "none";
	if (is_jobs)
		om_value(om, labels, 1, table->rest_cpu_s);
}

static void write_gauge(const struct group_rows *table, size_t g, struct om *om)
{
	struct om_label labels[LABELS_MAX];
	om_family(om, &om_families[gauges[g].families[table->grouping]]);
	for (size_t i = 0; i < table->n; i++) {
		const struct group_row *row = &table->items[i];
		if (row->is_here && row->series.state == SERIES_SHOWN && group_row_is_shown(table, row))
			om_value(om, labels, put_labels(table, row, labels), gauges[g].of(&row->now));
	}
}

void metrics_write_groups(const struct monitor_sample *now, const struct totals *totals, struct om *om)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++) {
		const struct group_rows *table = &totals->groups[k];
		if (table->bounds.most == 0)
			continue;
		write_energy(now, table, om);
		write_cpu(table, om);
		for (size_t g = 0; g < ARRAY_SIZE(gauges); g++)
			write_gauge(table, g, om);
	}
}
