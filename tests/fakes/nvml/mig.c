/* Instances of a card: their handles, sizes and accounting data. */
#include "fake.h"

#include "export.h"

#if FAKE_GENERATION >= 470

API(nvmlDeviceGetMigMode, const void *device, unsigned int *ret_current, unsigned int *ret_pending)
{
	GPU(device);
	if (view.gpu->n_mig == 0)
		return NOT_SUPPORTED;
	*ret_pending = 1;
	*ret_current = !view.gpu->mig_off;
	return SUCCESS;
}

API(nvmlDeviceGetMaxMigDeviceCount, const void *device, unsigned int *ret_count)
{
	GPU(device);
	*ret_count = view.gpu->n_mig > 0 ? view.gpu->mig_max : 0;
	return SUCCESS;
}

API(nvmlDeviceGetMigDeviceHandleByIndex, const void *device, unsigned int index, const void **ret_device)
{
	GPU(device);
	if (view.gpu->mig_off || index >= view.gpu->n_mig)
		return NOT_FOUND;
	*ret_device = fake_part(view.index, index);
	return SUCCESS;
}

API(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, const void *device, const void **ret_device)
{
	GPU_OR_PART(device);
	*ret_device = fake_whole(view.index);
	return view.instance >= 0 ? SUCCESS : INVALID_ARGUMENT;
}

API(nvmlDeviceIsMigDeviceHandle, const void *device, unsigned int *ret_is)
{
	GPU_OR_PART(device);
	*ret_is = view.instance >= 0;
	return SUCCESS;
}

API(nvmlDeviceGetGpuInstanceId, const void *device, unsigned int *ret_id)
{
	GPU_OR_PART(device);
	if (view.instance < 0)
		return NOT_SUPPORTED;
	*ret_id = view.gpu->mig[view.instance].gpu_instance;
	return SUCCESS;
}

API(nvmlDeviceGetComputeInstanceId, const void *device, unsigned int *ret_id)
{
	GPU_OR_PART(device);
	if (view.instance < 0)
		return NOT_SUPPORTED;
	*ret_id = view.gpu->mig[view.instance].compute_instance;
	return SUCCESS;
}

API(nvmlDeviceGetAttributes_v2, const void *device, struct wire_attributes *ret)
{
	GPU_OR_PART(device);
	if (view.instance < 0 || view.gpu->mig[view.instance].slices == 0)
		return NOT_SUPPORTED;
	const struct fake_mig *part = &view.gpu->mig[view.instance];
	*ret = (struct wire_attributes){.multiprocessors = part->multiprocessors,
		.gpu_slices = part->slices,
		.compute_slices = part->slices,
		.memory_mib = part->memory_bytes >> 20};
	return SUCCESS;
}

#endif
