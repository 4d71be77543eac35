#include "analysis/energy/attribute.h"

#include "base/util.h"

// Mean over a window of what is known of a metric; NaN if nothing is.
static double mean_in(const struct run_device *device, struct slice samples, enum device_metric metric)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (!value_ok(device->values[metric][i]))
			continue;
		sum += (double)device->values[metric][i];
		n++;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

// False if either side is not known or both are nothing.
static bool share_of(double target, double others, enum method method, struct shares *ret_shares)
{
	if (!(target + others > 0))
		return false;
	*ret_shares = (struct shares){.target = target / (target + others), .method = method};
	return true;
}

static bool by_presence(double target_processes, double others_processes, struct shares *ret_shares)
{
	bool alone = target_processes > 0 && others_processes == 0,
	     absent = others_processes > 0 && target_processes == 0;
	if (!alone && !absent)
		return false;
	*ret_shares = (struct shares){.target = alone ? 1 : 0, .method = METHOD_EXCLUSIVE};
	return true;
}

/* A MIG parent has one meter for all of its instances. Their slices divide it; slices of instances that nobody uses, and
 * those in no instance, are idle. Programs in one instance share its slices. */
static bool by_slices(const struct run_device *device, struct slice samples, struct shares *ret_shares)
{
	double target = mean_in(device, samples, DEVICE_TARGET_MIG_SHARE) / 1e6;
	double others = mean_in(device, samples, DEVICE_OTHERS_MIG_SHARE) / 1e6;
	if (isnan(target) && isnan(others))
		return false;
	target = target > 0 ? target : 0;
	others = others > 0 ? others : 0;
	double whole = fmax(target + others, 1);
	*ret_shares = (struct shares){.target = target / whole,
		.idle = 1 - (target + others) / whole,
		.method = METHOD_MIG_SLICES};
	if (target + others == 0)
		ret_shares->method = METHOD_IDLE;
	return true;
}

struct shares shares_gpu(const struct attribution *a, const struct window *window)
{
	const struct run_device *device = a->user;
	// Most devices are read with each sample.
	struct slice samples =
		slice_after_near(device->t_ns, device->n, window->from_ns, window->to_ns, window->first);
	double target_processes = mean_in(device, samples, DEVICE_TARGET_PROCESSES);
	double others_processes = mean_in(device, samples, DEVICE_OTHERS_PROCESSES);
	double busy = mean_in(device, samples, DEVICE_UTILIZATION);
	// Busy with nobody on it: somebody is there whom we may not see, as in a container.
	bool nobody = target_processes + others_processes == 0 && !(busy > 0);
	if (nobody || busy == 0)
		return (struct shares){.idle = 1, .method = METHOD_IDLE};
	struct shares shares;
	if (by_slices(device, samples, &shares))
		return shares;
	if (share_of(mean_in(device, samples, DEVICE_TARGET_UTILIZATION),
		    mean_in(device, samples, DEVICE_OTHERS_UTILIZATION), METHOD_SM_TIME, &shares))
		return shares;
	if (share_of(mean_in(device, samples, DEVICE_TARGET_MEMORY), mean_in(device, samples, DEVICE_OTHERS_MEMORY),
		    METHOD_GPU_MEMORY, &shares))
		return shares;
	if (by_presence(target_processes, others_processes, &shares))
		return shares;
	return (struct shares){.unattributed = 1, .method = METHOD_NONE};
}
