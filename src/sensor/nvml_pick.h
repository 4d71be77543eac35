/* From the GPUs that NVML shows to the list that gpu_select chooses from. */
#pragma once

#include "sensor/nvml_gpu.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>

// Sets ret_wanted[i] for each of the n GPUs; gpus[i] belongs to domains[i]. -EINVAL as gpu_select, -ENOMEM.
int nvml_pick(const struct nvml_api *api, const struct nvml_gpu *gpus, const struct domain *domains, size_t n,
	const struct sensor_options *options, bool *ret_wanted, struct wattle_error *reterr);
