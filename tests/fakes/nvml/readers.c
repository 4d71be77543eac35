/* Functions that other readers of NVML need (nvidia-ml-py, nvitop, Zeus, CodeCarbon) and wattle does not call. */
#include "export.h"

#include <string.h>

enum { CUDA_VERSION = 12040, ARCHITECTURE_AMPERE = 7 };

#if FAKE_GENERATION >= 470

int nvmlInit_v2(void);

API(nvmlInitWithFlags, unsigned int flags)
{
	return flags == 0 ? nvmlInit_v2() : INVALID_ARGUMENT;
}

API(nvmlSystemGetCudaDriverVersion_v2, int *ret_version)
{
	fake_count(__func__);
	*ret_version = CUDA_VERSION;
	return SUCCESS;
}

API(nvmlDeviceGetArchitecture, const void *device, unsigned int *ret_architecture)
{
	GPU(device);
	*ret_architecture = ARCHITECTURE_AMPERE;
	return SUCCESS;
}

#endif

API(nvmlDeviceGetIndex, const void *device, unsigned int *ret_index)
{
	GPU(device);
	*ret_index = view.index;
	return SUCCESS;
}

API(nvmlSystemGetNVMLVersion, char *out, unsigned int size)
{
	fake_count(__func__);
	static const char version[] = "12.550.54.15";
	if (size < sizeof(version))
		return INSUFFICIENT_SIZE;
	memcpy(out, version, sizeof(version));
	return SUCCESS;
}
