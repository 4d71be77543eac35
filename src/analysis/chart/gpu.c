// Device metrics other than energy: utilization, memory, temperature, clocks, of GPUs and, for temperature, of
// packages.
#include "analysis/chart/builder.h"

#include "base/util.h"

#include <errno.h>

enum { CHART_MANY_GPUS = 4 }; // from this number of GPUs on their chart also has a mean

enum device_chart_id { CHART_gpu_utilization, CHART_gpu_memory, CHART_temperature, CHART_clock, DEVICE_CHARTS };

static const struct device_row { // per chart: a series for each device with the metric
	enum device_chart_id chart;
	enum device_metric metric;
	enum chart_line line;
	const char *suffix, *words; // suffix of the name, and of the label
} device_rows[] = {
#define DEVICE_SERIES(chart, id, line, suffix, words) {CHART_##chart, DEVICE_##id, CHART_##line, suffix, words},
#include "metric/metrics.def"
};

static const struct device_chart {
	const char *id, *title, *unit;
	double ceiling; // 0: the memory size of the devices, if it is equal
} device_charts[DEVICE_CHARTS] = {
	[CHART_gpu_utilization] = {"gpu_utilization", "GPU utilization", "percent", 100},
	[CHART_gpu_memory] = {"gpu_memory", "GPU memory", "bytes", 0},
	[CHART_temperature] = {"temperature", "Temperature", "c", (double)NAN},
	[CHART_clock] = {"clock", "Clocks", "mhz", (double)NAN},
};

static bool has_data(const struct run_device *device, enum device_metric metric)
{
	for (size_t i = 0; i < device->n; i++)
		if (value_ok(device_value(device, metric, i)))
			return true;
	return false;
}

static int add(struct chart_work *work, struct chart *chart, const struct run_device *device,
	const struct device_row *row)
{
	if (!has_data(device, row->metric))
		return 0;
	const struct chart_series like = {.name = arena_printf(work->arena, "%s%s", device->name, row->suffix),
		.label = chart_device_label(work, device, row->words),
		.line = row->line,
		.device = device};
	struct chart_series *series = like.name != NULL && like.label != NULL ? chart_add(work, chart, &like) : NULL;
	if (series == NULL)
		return -ENOMEM;
	return resampler_gauge(work, series,
		&(struct chart_gauge){.t_ns = device->t_ns,
			.values = device_column(device, row->metric),
			.n = device->n,
			.scale = 1,
			.device = device});
}

// The memory size of each device, if all are equal.
static double memory_of_each(const struct chart *chart)
{
	double bytes = (double)NAN;
	for (size_t i = 0; i < chart->n_series; i++) {
		double own = value_to_double(chart->series[i].device->memory_total_bytes, 1);
		if (i > 0 && own != bytes)
			return (double)NAN;
		bytes = own;
	}
	return bytes;
}

static bool is_gpu_part(const struct chart_series *s)
{
	return s->line == CHART_PART && s->device != NULL && s->device->kind == DOMAIN_GPU;
}

static void fill_mean(const struct chart *chart, size_t n_parts, struct chart_series *mean, size_t bucket)
{
	double sum = 0, low = INFINITY, high = -INFINITY;
	size_t known = 0;
	for (size_t i = 0; i < n_parts; i++) {
		const struct chart_series *part = &chart->series[i];
		if (!is_gpu_part(part) || isnan(part->mean[bucket]))
			continue;
		known++;
		sum += part->mean[bucket];
		low = fmin(low, part->low[bucket]);
		high = fmax(high, part->high[bucket]);
	}
	if (known == 0)
		return;
	mean->low[bucket] = low;
	mean->high[bucket] = high;
	mean->mean[bucket] = fmin(fmax(sum / (double)known, low), high); // rounding error
}

// The last one drawn of eight overlapping lines hides the others.
static int add_mean(struct chart_work *work, struct chart *chart)
{
	size_t n = chart->n_series, n_gpus = 0;
	for (size_t i = 0; i < n; i++)
		n_gpus += is_gpu_part(&chart->series[i]);
	if (n_gpus < CHART_MANY_GPUS)
		return 0;
	const struct chart_series like = {.name = "mean",
		.label = arena_printf(work->arena, "mean of %zu GPUs", n_gpus),
		.line = CHART_MEAN};
	struct chart_series *mean = like.label != NULL ? chart_add(work, chart, &like) : NULL;
	for (size_t i = 0; mean != NULL && i < work->charts->axis.n; i++)
		fill_mean(chart, n, mean, i);
	return mean != NULL ? 0 : -ENOMEM;
}

static int make(struct chart_work *work, enum device_chart_id id)
{
	const struct findings *f = work->findings;
	const struct device_chart *about = &device_charts[id];
	struct chart chart = {.id = about->id, .title = about->title, .unit = about->unit, .style = CHART_LINES};
	if (!chart_begin(work, &chart, ARRAY_SIZE(device_rows) * f->n_domains + 1))
		return -ENOMEM;
	for (size_t d = 0; d < f->n_domains; d++)
		for (size_t r = 0; r < ARRAY_SIZE(device_rows); r++)
			if (device_rows[r].chart == id &&
				add(work, &chart, f->domains[d].device, &device_rows[r]) < 0)
				return -ENOMEM;
	chart.ceiling = about->ceiling != 0 ? about->ceiling : memory_of_each(&chart);
	return add_mean(work, &chart) == 0 ? chart_end(work, &chart) : -ENOMEM;
}

int chart_gpus(struct chart_work *work)
{
	for (size_t i = 0; i < DEVICE_CHARTS; i++)
		if (make(work, (enum device_chart_id)i) < 0)
			return -ENOMEM;
	return 0;
}
