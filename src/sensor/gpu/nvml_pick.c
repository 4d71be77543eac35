#include "sensor/gpu/nvml_pick.h"

#include "base/util.h"
#include "sensor/gpu/gpu_choice.h"

#include <errno.h>

static int list_instances(const struct nvml_mig *mig, struct gpu_candidate *candidate)
{
	const char **uuids = calloc_array(mig->n, sizeof(*uuids));
	if (uuids == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < mig->n; i++) {
		if (mig->instances[i].uuid[0] != '\0')
			uuids[candidate->n_mig_uuids++] = mig->instances[i].uuid;
	}
	candidate->mig_uuids = uuids;
	return 0;
}

// With the speed of one GPU unknown, speeds tell nothing about the order of all.
static void drop_partial_speeds(struct gpu_candidate *candidates, size_t n)
{
	bool all = true;
	for (size_t i = 0; i < n; i++)
		all = all && (candidates[i].speed > 0 || !candidates[i].usable);
	for (size_t i = 0; i < n && !all; i++)
		candidates[i].speed = 0;
}

static int describe(struct gpu_candidate *candidates, const struct nvml_gpu *gpus, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		candidates[i].usable = gpus[i].domain->readable;
		if (!candidates[i].usable)
			continue;
		candidates[i].speed = nvml_gpu_speed(&gpus[i]);
		r = list_instances(&gpus[i].mig, &candidates[i]);
	}
	drop_partial_speeds(candidates, n);
	return r;
}

static const char *visible_to_target(const struct sensor_options *options, const struct gpu_candidate *candidates,
	size_t n, bool *ret_wanted)
{
	gpu_select_visible(options->cuda_visible_devices, options->cuda_device_order, candidates, n, ret_wanted);
	return "hidden by CUDA_VISIBLE_DEVICES";
}

int nvml_pick(const struct nvml_gpu *gpus, struct domain *domains, size_t n, const struct sensor_options *options)
{
	struct gpu_candidate *candidates = gpu_choice_candidates(domains, n);
	int r = candidates != NULL ? describe(candidates, gpus, n) : -ENOMEM;
	for (size_t i = 0; i < n; i++)
		domains[i].used = domains[i].readable;
	if (r == 0)
		r = gpu_choice_settle(domains, candidates, n, visible_to_target, options);
	for (size_t i = 0; candidates != NULL && i < n; i++)
		free((void *)(uintptr_t)candidates[i].mig_uuids);
	free(candidates);
	return r;
}
