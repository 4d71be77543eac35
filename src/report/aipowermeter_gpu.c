#include "report/aipowermeter_internal.h"

#include "base/util.h"

#include <stdio.h>

static const int64_t outdated_ns = 2500 * NS_PER_MS; // maximum age of a reading, except at the end of a segment

/* The last reading of a metric at or before the row. The start of a segment uses the first reading, because AIPowerMeter
 * splits a curve into segments where a point lies exactly at a segment's end. */
static double gauge(const struct aipowermeter *a, const struct aipm_row *row, const struct run_device *device,
	enum device_metric metric)
{
	struct slice samples = slice_of(a->run, row->segment, device->t_ns, device->n);
	int64_t at_ns = a->timeline.t_ns[row->instant];
	size_t first_after = slice_lower_bound(device->t_ns, device->n, at_ns + 1);
	for (size_t i = first_after; i > samples.begin; i--) {
		if (!row->at_end && at_ns - device->t_ns[i - 1] > outdated_ns)
			break;
		if (value_ok(device_value(device, metric, i - 1)))
			return (double)device_value(device, metric, i - 1);
	}
	for (size_t i = first_after; row->at_end && i < samples.end; i++)
		if (value_ok(device_value(device, metric, i)))
			return (double)device_value(device, metric, i);
	return (double)NAN;
}

enum figure { POWER, TARGET_POWER, MEMORY, USE, TARGET_USE, TARGET_SHARE };

static double figure(const struct aipowermeter *a, const struct aipm_row *row, const struct aipm_gpu *gpu,
	enum figure what)
{
	double mine = (double)NAN, others = (double)NAN;
	switch (what) {
	case POWER:
		return gpu->powers.all_w[row->instant];
	case TARGET_POWER:
		return gpu->is_divided ? gpu->powers.target_w[row->instant] : (double)NAN;
	case MEMORY:
		return gauge(a, row, gpu->device, DEVICE_MEMORY_USED);
	case USE:
		return gauge(a, row, gpu->device, DEVICE_UTILIZATION);
	case TARGET_USE:
		return gauge(a, row, gpu->device, DEVICE_TARGET_UTILIZATION) / 100;
	case TARGET_SHARE:
		mine = gauge(a, row, gpu->device, DEVICE_TARGET_UTILIZATION);
		others = gauge(a, row, gpu->device, DEVICE_OTHERS_UTILIZATION);
		return mine == 0 ? 0 : mine / (mine + (isnan(others) ? 0 : others));
	}
	return mine;
}

static void key_index(struct jsonw *j, const struct aipm_gpu *gpu)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", gpu->device->index);
	jsonw_key(j, text);
}

// Writes {gpu: value}, without GPUs whose value is unknown.
static void per_gpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	enum figure what)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = 0; i < a->n_gpus; i++) {
		double value = figure(a, row, &a->gpus[i], what);
		if (isnan(value))
			continue;
		key_index(j, &a->gpus[i]);
		jsonw_double(j, value);
	}
	jsonw_end_object(j);
}

// Writes {gpu: {pid: value}}; values known only for the whole target are under its root process.
static void per_gpu_per_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	enum figure what)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = 0; i < a->n_gpus; i++) {
		double value = what == MEMORY ? gauge(a, row, a->gpus[i].device, DEVICE_TARGET_MEMORY)
					      : figure(a, row, &a->gpus[i], what);
		if (isnan(value))
			continue;
		key_index(j, &a->gpus[i]);
		jsonw_begin_object(j);
		aipm_key_pid(j, aipm_root_pid(a, row->segment));
		jsonw_double(j, value);
		jsonw_end_object(j);
	}
	jsonw_end_object(j);
}

// Sum over the GPUs present in this segment; NaN if any value is unknown.
static double sum(const struct aipowermeter *a, const struct aipm_row *row, enum figure what, size_t *ret_n)
{
	double all = (double)NAN;
	*ret_n = 0;
	for (size_t i = 0; i < a->n_gpus; i++) {
		const struct run_device *device = a->gpus[i].device;
		struct slice samples = slice_of(a->run, row->segment, device->t_ns, device->n);
		if (samples.begin == samples.end)
			continue;
		double value = figure(a, row, &a->gpus[i], what);
		all = ++*ret_n == 1 ? value : all + value;
	}
	return all;
}

/* Writes the keys of current AIPowerMeter, whose reader requires all six in each row, and the older keys that its
 * documentation describes. Powers are sums over whole GPUs, so an unreadable GPU omits them from the row. */
void aipm_gpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row)
{
	size_t n;
	double use = sum(a, row, USE, &n);
	if (n == 0)
		return;
	double power_w = a->kinds[DOMAIN_GPU].powers.all_w[row->instant];
	jsonw_key(j, "gpu");
	jsonw_begin_object(j);
	jsonw_key_double(j, "nvidia_power", power_w);
	jsonw_key_double(j, "nvidia_memory", sum(a, row, MEMORY, &n));
	jsonw_key_double(j, "nvidia_use_rate", use / (double)n);
	per_gpu(j, a, row, "per_gpu_nvidia_power", POWER);
	per_gpu(j, a, row, "per_gpu_nvidia_memory", MEMORY);
	per_gpu(j, a, row, "per_gpu_nvidia_use_rate", USE);
	jsonw_key_double(j, "nvidia_draw_absolute", power_w);
	per_gpu(j, a, row, "per_gpu_power_draw", POWER);
	per_gpu(j, a, row, "per_gpu_attributable_power", TARGET_POWER);
	per_gpu_per_pid(j, a, row, "per_gpu_attributable_mem_use", MEMORY);
	per_gpu_per_pid(j, a, row, "per_gpu_per_pid_utilization_absolute", TARGET_USE);
	per_gpu(j, a, row, "per_gpu_absolute_percent_usage", TARGET_USE);
	per_gpu(j, a, row, "per_gpu_estimated_attributable_utilization", TARGET_SHARE);
	jsonw_end_object(j);
}
