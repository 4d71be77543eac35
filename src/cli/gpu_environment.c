#include "cli/gpu_environment.h"

#include <stdlib.h>

void gpu_environment(struct sensor_options *options)
{
	options->cuda_visible_devices = getenv("CUDA_VISIBLE_DEVICES");
	options->cuda_device_order = getenv("CUDA_DEVICE_ORDER");
	options->hip_visible_devices = getenv("HIP_VISIBLE_DEVICES");
	options->rocr_visible_devices = getenv("ROCR_VISIBLE_DEVICES");
}
