/* From the GPUs that NVML shows to those that are wanted. */
#pragma once

#include "sensor/gpu/nvml_gpu.h"
#include "sensor/sensor.h"

#include <stddef.h>

/* Enters the n GPUs into options->roster and sets `unwanted`, `used` and `why` of their domains. GPUs that are not wanted stay:
 * `wattle sensors` and the number of the machine's GPUs count them. -ENOMEM. */
int nvml_pick(const struct nvml_gpu *gpus, struct domain *domains, size_t n, const struct sensor_options *options);
