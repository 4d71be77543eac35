#include "sensor/nvml_pick.h"

#include "base/arena.h"
#include "base/util.h"
#include "sensor/gpu_roster.h"

#include <errno.h>

// A board holds at most seven instances today.
enum { MIG_MAX = 64 };

static const char *instance_uuid(const struct nvml_api *api, nvml_device gpu, unsigned int index, struct arena *arena)
{
	char uuid[NVML_TEXT_MAX] = "";
	nvml_device instance;
	if (api->mig_by_index(gpu, index, &instance) != NVML_SUCCESS ||
		api->uuid(instance, uuid, sizeof(uuid)) != NVML_SUCCESS)
		return NULL;
	uuid[sizeof(uuid) - 1] = '\0';
	return arena_text(arena, uuid);
}

// The UUIDs of the MIG instances of a GPU; none where MIG is off or unknown to the driver.
static int list_instances(const struct nvml_api *api, nvml_device gpu, struct arena *arena,
	struct gpu_candidate *candidate)
{
	unsigned int max = 0;
	if (api->mig_max == NULL || api->mig_by_index == NULL || api->uuid == NULL)
		return 0;
	if (api->mig_max(gpu, &max) != NVML_SUCCESS || max == 0)
		return 0;
	if (max > MIG_MAX)
		max = MIG_MAX;
	const char **uuids = arena_alloc(arena, max, sizeof(*uuids));
	if (uuids == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < max; i++) {
		const char *uuid = instance_uuid(api, gpu, i, arena);
		if (uuid != NULL)
			uuids[candidate->n_mig_uuids++] = uuid;
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

static int list_candidates(const struct nvml_api *api, const struct nvml_gpu *gpus, const struct domain *domains,
	size_t n, struct arena *arena, struct gpu_candidate *candidates)
{
	for (size_t i = 0; i < n; i++) {
		candidates[i] = (struct gpu_candidate){
			.index = domains[i].index,
			.uuid = domains[i].uuid,
			.name = domains[i].device,
			.usable = domains[i].readable,
		};
		if (!domains[i].readable)
			continue;
		candidates[i].speed = nvml_gpu_speed(api, &gpus[i]);
		int r = list_instances(api, gpus[i].handle, arena, &candidates[i]);
		if (r < 0)
			return r;
	}
	drop_partial_speeds(candidates, n);
	return 0;
}

int nvml_pick(const struct nvml_api *api, const struct nvml_gpu *gpus, const struct domain *domains, size_t n,
	const struct sensor_options *options, bool *ret_wanted)
{
	struct arena *arena = arena_new();
	struct gpu_candidate *candidates = arena != NULL ? arena_alloc(arena, n, sizeof(*candidates)) : NULL;
	int r = candidates != NULL ? list_candidates(api, gpus, domains, n, arena, candidates) : -ENOMEM;
	if (r == 0) {
		gpu_select_visible(options->cuda_visible_devices, options->cuda_device_order, candidates, n, ret_wanted);
		r = gpu_roster_add(options->roster, candidates, n, ret_wanted); // --gpus beats the environment
	}
	arena_free(arena);
	return r;
}
