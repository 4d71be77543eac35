#include "serve/view.h"

#include "base/util.h"

#include <assert.h>

/* Jobs and cgroups. What processes were attributed stands in one row of each: a job's own, "other" (those that have no row) or
 * "none" (processes of no job; of cgroups there are none). */

enum { LABELS_MOST = 4 };

static const char *const resources[NOW_RESOURCES] = {[NOW_CPU] = "cpu", [NOW_DRAM] = "dram", [NOW_GPU] = "gpu"};

static double power_w(const struct now_group *group)
{
	return group->power_w;
}

static double cpu_cores(const struct now_group *group)
{
	return group->cpu_cores;
}

static double processes(const struct now_group *group)
{
	return (double)group->processes;
}

static double rss_bytes(const struct now_group *group)
{
	return value_to_double(group->rss_bytes, 1);
}

static double gpu_use(const struct now_group *group)
{
	return group->gpu_percent / 100;
}

static double gpu_memory_bytes(const struct now_group *group)
{
	return value_to_double(group->gpu_memory_bytes, 1);
}

// clang-format off
static const struct {
	const char *label;
	struct om_family energy, cpu;
	struct om_family gauges[6];
} families[NOW_GROUPINGS] = {
#define FAMILIES(thing, label_name, text)                                                                                        \
	{                                                                                                                        \
		.label = label_name,                                                                                             \
		.energy = {"wattle_" thing "_energy_joules", OM_COUNTER, "joules",                                               \
			"Energy that is attributed to the processes of " text ", by what used it."},                             \
		.cpu = {"wattle_" thing "_cpu_seconds", OM_COUNTER, "seconds", "CPU time of the processes of " text "."},        \
		.gauges = {                                                                                                      \
			{"wattle_" thing "_power_watts", OM_GAUGE, "watts", "Power that is attributed to " text "."},            \
			{"wattle_" thing "_cpu_busy_cores", OM_GAUGE, "cores",                                                   \
				"Cores that " text " kept busy between the last two looks."},                                    \
			{"wattle_" thing "_processes", OM_GAUGE, NULL, "Processes of " text "."},                                \
			{"wattle_" thing "_resident_memory_bytes", OM_GAUGE, "bytes",                                            \
				"Resident memory of the processes of " text ", shared pages in each."},                          \
			{"wattle_" thing "_gpu_utilization_ratio", OM_GAUGE, "ratio",                                            \
				"GPU time of " text ", summed over GPUs; 1 is one GPU busy."},                                   \
			{"wattle_" thing "_gpu_memory_bytes", OM_GAUGE, "bytes", "GPU memory of " text ", summed over GPUs."},   \
		},                                                                                                               \
	}
	[NOW_JOBS] = FAMILIES("job", "jobid", "the job"),
	[NOW_CGROUPS] = FAMILIES("cgroup", "cgroup", "the cgroup"),
#undef FAMILIES
};
// clang-format on

static double (*const gauges[])(
	const struct now_group *) = {power_w, cpu_cores, processes, rss_bytes, gpu_use, gpu_memory_bytes};
static_assert(ARRAY_SIZE(gauges) == ARRAY_SIZE(families[0].gauges), "a family of each gauge");

static size_t put_labels(const struct group_rows *table, const struct group_row *row, struct om_label *labels)
{
	labels[0] = (struct om_label){families[table->grouping].label, row->name};
	labels[1] = (struct om_label){"user", row->user};
	return 2;
}

static bool uses(const struct now *now, const double *energy_j, int resource)
{
	return now->exists[resource] && (resource != NOW_GPU || energy_j[resource] > 0);
}

static void write_energy_of(const struct now *now, struct om *om, struct om_label *labels, size_t n,
	const double *energy_j)
{
	for (int r = 0; r < NOW_RESOURCES; r++) {
		labels[n] = (struct om_label){"resource", resources[r]};
		if (uses(now, energy_j, r)) // hardly any job is on a GPU that could be
			om_value(om, labels, n + 1, energy_j[r]);
	}
}

static void write_energy(const struct now *now, const struct group_rows *table, struct om *om)
{
	struct om_label labels[LABELS_MOST] = {{.name = families[table->grouping].label}};
	double other_j[NOW_RESOURCES];
	bool is_jobs = table->grouping == NOW_JOBS;
	om_family(om, &families[table->grouping].energy);
	for (size_t i = 0; i < table->n; i++)
		if (group_row_is_shown(table, &table->items[i]))
			write_energy_of(now, om, labels, put_labels(table, &table->items[i], labels),
				table->items[i].energy_j);
	for (int r = 0; r < NOW_RESOURCES; r++)
		other_j[r] = table->other_j[r] + (is_jobs ? 0 : table->rest_j[r]);
	labels[0].value = "other";
	write_energy_of(now, om, labels, 1, other_j);
	labels[0].value = "none";
	if (is_jobs)
		write_energy_of(now, om, labels, 1, table->rest_j);
}

static void write_cpu(const struct group_rows *table, struct om *om)
{
	struct om_label labels[LABELS_MOST] = {{.name = families[table->grouping].label}};
	bool is_jobs = table->grouping == NOW_JOBS;
	om_family(om, &families[table->grouping].cpu);
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
	struct om_label labels[LABELS_MOST];
	om_family(om, &families[table->grouping].gauges[g]);
	for (size_t i = 0; i < table->n; i++) {
		const struct group_row *row = &table->items[i];
		if (row->is_here && row->series.state == SERIES_SHOWN && group_row_is_shown(table, row))
			om_value(om, labels, put_labels(table, row, labels), gauges[g](&row->now));
	}
}

void metrics_write_groups(const struct now *now, const struct tally *tally, struct om *om)
{
	for (int k = 0; k < NOW_GROUPINGS; k++) {
		const struct group_rows *table = &tally->groups[k];
		if (table->bounds.most == 0)
			continue;
		write_energy(now, table, om);
		write_cpu(table, om);
		for (size_t g = 0; g < ARRAY_SIZE(gauges); g++)
			write_gauge(table, g, om);
	}
}
