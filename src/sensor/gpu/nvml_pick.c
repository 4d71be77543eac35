#include "sensor/gpu/nvml_pick.h"

#include "base/arena.h"
#include "sensor/gpu/gpu_roster.h"

#include <errno.h>

static int list_instances(const struct nvml_mig *mig, struct arena *arena, struct gpu_candidate *candidate)
{
	const char **uuids = arena_alloc(arena, mig->n, sizeof(*uuids));
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

static int list_candidates(const struct nvml_gpu *gpus, size_t n, struct arena *arena, struct gpu_candidate *candidates)
{
	for (size_t i = 0; i < n; i++) {
		candidates[i] = (struct gpu_candidate){
			.index = gpus[i].domain->index,
			.uuid = gpus[i].domain->uuid,
			.name = gpus[i].domain->device,
			.usable = gpus[i].domain->readable,
		};
		if (!candidates[i].usable)
			continue;
		candidates[i].speed = nvml_gpu_speed(&gpus[i]);
		int r = list_instances(&gpus[i].mig, arena, &candidates[i]);
		if (r < 0)
			return r;
	}
	drop_partial_speeds(candidates, n);
	return 0;
}

int nvml_pick(const struct nvml_gpu *gpus, size_t n, const struct sensor_options *options, bool *ret_wanted)
{
	struct arena *arena = arena_new();
	struct gpu_candidate *candidates = arena != NULL ? arena_alloc(arena, n, sizeof(*candidates)) : NULL;
	int r = candidates != NULL ? list_candidates(gpus, n, arena, candidates) : -ENOMEM;
	if (r == 0) {
		gpu_select_visible(options->cuda_visible_devices, options->cuda_device_order, candidates, n,
			ret_wanted);
		r = gpu_roster_add(options->roster, candidates, n, ret_wanted); // --gpus beats the environment
	}
	arena_free(arena);
	return r;
}
