/* From the GPUs that NVML shows to those that are wanted. */
#pragma once

#include "sensor/gpu/nvml_gpu.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>

// Tells options->roster of the n GPUs and sets ret_wanted[i] for each. -ENOMEM.
int nvml_pick(const struct nvml_gpu *gpus, size_t n, const struct sensor_options *options, bool *ret_wanted);
