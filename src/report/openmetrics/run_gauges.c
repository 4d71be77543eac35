// Stored readings of devices and of the run, at each sample.
#include "report/openmetrics/internal.h"

#include "base/util.h"

static void write_device(struct om_run *w, const struct run_device *device, size_t metric, double scale)
{
	om_run_series(w, "domain", device->name);
	om_run_label(w, "kind", domain_kind_name(device->kind));
	for (size_t i = 0; i < device->n; i++)
		om_run_put(w, device->t_ns[i], value_to_double(device_value(device, metric, i), scale));
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

// clang-format off
static const struct {
	enum om_id family;
	double scale;
	size_t n_metrics;
	enum run_metric metrics[2]; // summed
} run_rows[] = {
	{FAMILY_TARGET_CPU, 1e-9, 2, {RUN_MAIN_CPU, RUN_DESCENDANTS_CPU}},
	{FAMILY_TARGET_MEMORY, 1, 2, {RUN_MAIN_RSS, RUN_DESCENDANTS_RSS}},
	{FAMILY_TARGET_PSS, 1, 2, {RUN_MAIN_PSS, RUN_DESCENDANTS_PSS}},
	{FAMILY_TARGET_PROCESSES, 1, 1, {RUN_PROCESSES}},
	{FAMILY_TARGET_THREADS, 1, 2, {RUN_MAIN_THREADS, RUN_DESCENDANTS_THREADS}},
	{FAMILY_CPU_BUSY, 1e-9, 1, {RUN_SYSTEM_BUSY}},
	{FAMILY_CPU_IDLE, 1e-9, 1, {RUN_SYSTEM_IDLE}},
	{FAMILY_MEMORY_USED, 1, 1, {RUN_SYSTEM_MEMORY}},
	{FAMILY_OWN_CPU, 1e-9, 1, {RUN_SELF_CPU}},
	{FAMILY_OWN_MEMORY, 1, 1, {RUN_SELF_RSS}},
};
// clang-format on

static double value_at(const struct run *run, size_t row, size_t sample)
{
	double sum = 0;
	for (size_t i = 0; i < run_rows[row].n_metrics; i++)
		sum += value_to_double(run_value(run, run_rows[row].metrics[i], sample), run_rows[row].scale);
	return sum;
}

void om_run_gauges(struct om_run *w)
{
	write_devices(w);
	for (size_t r = 0; r < ARRAY_SIZE(run_rows); r++) {
		om_run_family(w, &om_families[run_rows[r].family]);
		om_run_series(w, NULL, NULL);
		for (size_t i = 0; i < w->run->n; i++)
			om_run_put(w, w->run->t_ns[i], value_at(w->run, r, i));
	}
}
