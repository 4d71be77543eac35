
#include "analysis/metadata_keys.h"
#include "analysis/run/internal.h"
#include "analysis/stats.h"
#include "base/util.h"
#include "energy/curve.h"
#include "energy/slice.h"
#include "metric/metric.h"

#include <errno.h>

// Mean over time: each sample represents the time since the previous sample, unless that is a hole.
struct weighted {
	double sum, s;
};

static void add_weighted(struct weighted *w, int64_t value, double dt_s)
{
	if (!value_ok(value))
		return;
	w->sum += (double)value * dt_s;
	w->s += dt_s;
}

static double weighted_mean(struct weighted w)
{
	return w.s > 0 ? w.sum / w.s : (double)NAN;
}

static const struct {
	enum device_metric metric;
	size_t offset; // in struct gpu_finding
} means[] = {
#define DEVICE_MEAN(id, member, ...) {DEVICE_##id, offsetof(struct gpu_finding, member)},
#include "metric/metrics.def"
};

static void over_time(const struct run *run, const struct run_device *device, struct gpu_finding *gpu)
{
	struct weighted sums[ARRAY_SIZE(means)] = {0}, throttled = {0};
	int64_t hole_ns = curve_hole_ns(run_metadata_i64(run, META_KEY_INTERVAL));
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice samples = slice_of(run, s, device->t_ns, device->n);
		size_t before = samples.begin;
		for (size_t i = samples.begin + 1; i < samples.end; i++) {
			if (slice_is_poll(device, i))
				continue;
			int64_t dt_ns = device->t_ns[i] - device->t_ns[before];
			double dt_s = (double)dt_ns / 1e9;
			before = i;
			if (dt_ns > hole_ns)
				continue;
			int64_t reasons = device_value(device, DEVICE_THROTTLE_REASONS, i);
			for (size_t m = 0; m < ARRAY_SIZE(means); m++)
				add_weighted(&sums[m], device_value(device, means[m].metric, i), dt_s);
			add_weighted(&throttled, value_ok(reasons) ? throttle_held_back(reasons) != 0 : VALUE_MISSING,
				dt_s);
		}
	}
	for (size_t m = 0; m < ARRAY_SIZE(means); m++)
		*(double *)(void *)((char *)gpu + means[m].offset) = weighted_mean(sums[m]);
	gpu->throttled_s = throttled.s > 0 ? throttled.sum : (double)NAN;
}

static int64_t last_known(struct run_values values, size_t n)
{
	for (size_t i = n; i > 0; i--)
		if (value_ok(values_at(values, i - 1)))
			return values_at(values, i - 1);
	return VALUE_MISSING;
}

static int64_t max_known(struct run_values values, size_t n)
{
	int64_t max = VALUE_MISSING; // smaller than any known value
	for (size_t i = 0; i < n && values_any(values); i++) {
		int64_t value = values_at(values, i);
		max = value > max ? value : max;
	}
	return max;
}

/* Before the target used the GPU it is known to have had no memory there. If its later memory was never known, that 0
 * is not the maximum. */
static int64_t max_target_memory(const struct run_device *device)
{
	struct run_values bytes = device_column(device, DEVICE_TARGET_MEMORY),
			  processes = device_column(device, DEVICE_TARGET_PROCESSES);
	int64_t max_bytes = max_known(bytes, device->n);
	bool unknown_later = false;
	for (size_t i = 0; i < device->n; i++)
		unknown_later |= value_ok(values_at(processes, i)) && values_at(processes, i) > 0 &&
			!value_ok(values_at(bytes, i));
	return max_bytes == 0 && unknown_later ? VALUE_MISSING : max_bytes;
}

static struct gpu_finding describe(const struct run *run, const struct domain_finding *domain)
{
	const struct run_device *device = domain->device;
	struct gpu_finding gpu = {
		.device = device,
		.energy_j = domain->energy_j,
		.error_j = domain->error_j,
		.calibration_error_j = domain->calibration_error_j,
		.mean_w = domain->mean_w,
		.max_w = domain->max_w,
		.max_memory_bytes = max_known(device_column(device, DEVICE_MEMORY_USED), device->n),
		.target_max_memory_bytes = max_target_memory(device),
#define DEVICE_MAX(id, member, ...) .member = domain->member,
#include "metric/metrics.def"
		.cap_w = value_to_double(last_known(device_column(device, DEVICE_POWER_CAP), device->n), 1e-3),
	};
	over_time(run, device, &gpu);
	return gpu;
}

int gpus_make(struct findings *findings)
{
	findings->gpus = arena_alloc(findings->arena, findings->n_domains, sizeof(*findings->gpus));
	if (findings->gpus == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->n_domains; i++)
		if (findings->domains[i].device->kind == DOMAIN_GPU)
			findings->gpus[findings->n_gpus++] = describe(findings->run, &findings->domains[i]);
	return 0;
}
