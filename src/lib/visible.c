#include "lib/visible.h"

#include <stdlib.h>
#include <string.h>

void visible_gpus(struct sensor_options *options)
{
	options->cuda_visible_devices = secure_getenv("CUDA_VISIBLE_DEVICES");
	options->cuda_device_order = secure_getenv("CUDA_DEVICE_ORDER");
	options->hip_visible_devices = secure_getenv("HIP_VISIBLE_DEVICES");
	options->rocr_visible_devices = secure_getenv("ROCR_VISIBLE_DEVICES");
}

bool is_disabled_by_environment(void)
{
	const char *disable = secure_getenv("WATTLE_DISABLE");
	return disable != NULL && strcmp(disable, "1") == 0;
}
