#include "analysis/energy/attribute.h"

#include "base/util.h"

// Mean of a metric's known values over a window; NaN if there are none.
static double mean_in(const struct run_device *device, struct slice samples, enum device_metric metric)
{
	struct run_values values = device_column(device, metric);
	double sum = 0;
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end && values_any(values); i++) {
		int64_t value = values_at(values, i);
		if (!value_ok(value))
			continue;
		sum += (double)value;
		n++;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

struct shares shares_gpu(const struct attribution *a, const struct window *window)
{
	const struct run_device *device = a->user;
	// Most devices are read at each sample.
	struct slice samples =
		slice_after_near(device->t_ns, device->n, window->from_ns, window->to_ns, window->first);
	const struct gpu_use use = {
		.busy_percent = mean_in(device, samples, DEVICE_UTILIZATION),
		.target = {.processes = mean_in(device, samples, DEVICE_TARGET_PROCESSES),
			.slices = mean_in(device, samples, DEVICE_TARGET_MIG_SHARE) / 1e6,
			.busy = mean_in(device, samples, DEVICE_TARGET_UTILIZATION),
			.memory = mean_in(device, samples, DEVICE_TARGET_MEMORY)},
		.others = {.processes = mean_in(device, samples, DEVICE_OTHERS_PROCESSES),
			.slices = mean_in(device, samples, DEVICE_OTHERS_MIG_SHARE) / 1e6,
			.busy = mean_in(device, samples, DEVICE_OTHERS_UTILIZATION),
			.memory = mean_in(device, samples, DEVICE_OTHERS_MEMORY)},
	};
	return shares_of_gpu(&use);
}
