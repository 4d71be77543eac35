#include "sensor/gpu/gpu_environment.h"

#include <stdlib.h>

void gpu_environment(struct sensor_options *options)
{
	options->cuda_visible_devices = secure_getenv("CUDA_VISIBLE_DEVICES");
	options->cuda_device_order = secure_getenv("CUDA_DEVICE_ORDER");
	options->hip_visible_devices = secure_getenv("HIP_VISIBLE_DEVICES");
	options->rocr_visible_devices = secure_getenv("ROCR_VISIBLE_DEVICES");
}
