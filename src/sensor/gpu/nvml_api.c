#include "sensor/gpu/nvml_api.h"

#include "base/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NVML_ROW(member, need_, arguments, ...)                                                                        \
	{.names = {__VA_ARGS__}, .offset = offsetof(struct nvml_api, member), .need = need_},
static const struct dl_symbol nvml_symbols[] = {NVML_SYMBOLS(NVML_ROW)};
#undef NVML_ROW

// The unversioned name libnvidia-ml.so belongs to the development files and is missing in containers and on Debian.
static const char nvml_default[] = "libnvidia-ml.so.1";

const char *nvml_library(const struct wattle_env *env)
{
	return env->nvml != NULL ? env->nvml : nvml_default;
}

/* Selects the record layout of the _v3 lists. Drivers from 535.43 to before 535.98 wrote one extra field under the same name.
 * They already had the confidential-computing call, but not yet the detail list, to which that field moved. */
static size_t v3_record_size(const struct nvml_api *api)
{
	bool r535 = api->marks_r535 != NULL && api->marks_past_r535 == NULL;
	return r535 ? sizeof(struct nvml_process_r535) : sizeof(struct nvml_process_v2);
}

/* _v2 is preferred although _v3 is newer: both report the same, and _v2 has had one layout in all drivers since R450. */
static struct nvml_process_call choose_list(const struct nvml_api *api, int (*v2)(nvml_device, unsigned int *, void *),
	int (*v3)(nvml_device, unsigned int *, void *), int (*v1)(nvml_device, unsigned int *, void *))
{
	if (v2 != NULL)
		return (struct nvml_process_call){v2, sizeof(struct nvml_process_v2)};
	if (v3 != NULL)
		return (struct nvml_process_call){v3, v3_record_size(api)};
	return (struct nvml_process_call){v1, sizeof(struct nvml_process_v1)};
}

int nvml_api_open(struct nvml_api *api, const struct wattle_env *env, struct wattle_error *reterr)
{
	const char *const libraries[] = {nvml_library(env), NULL};
	*api = (struct nvml_api){0};
	int r = dl_open(libraries, nvml_symbols, ARRAY_SIZE(nvml_symbols), api, &api->handle, reterr);
	if (r < 0)
		return r;
	api->processes[NVML_COMPUTE] = choose_list(api, api->compute_v2, api->compute_v3, api->compute_v1);
	api->processes[NVML_GRAPHICS] = choose_list(api, api->graphics_v2, api->graphics_v3, api->graphics_v1);
	api->processes[NVML_MPS] = choose_list(api, api->mps_v2, api->mps_v3, api->mps_v1);
	return 0;
}

const char *nvml_library_failure(const struct wattle_env *env, const struct wattle_error *cause, char *ret_why,
	size_t size)
{
	if (cause->code == -ENOENT && strstr(cause->text, "No such file") != NULL)
		snprintf(ret_why, size, "%s not found", nvml_library(env));
	else
		text_copy(ret_why, size, cause->text);
	return cause->code == -ENOENT
		? "install the NVIDIA driver (Debian: sudo apt install nvidia-driver); start a container with --gpus all"
		: "install a newer NVIDIA driver";
}

void nvml_api_close(struct nvml_api *api)
{
	if (api->initialised)
		api->shutdown();
	if (api->handle != NULL)
		dlclose(api->handle);
	*api = (struct nvml_api){0};
}

static const struct {
	int code;
	struct nvml_failure failure;
} failures[] = {
	{NVML_NO_PERMISSION,
		{"no permission to use this GPU", "sudo usermod -aG video,render $USER, then log in again"}},
	{NVML_INSUFFICIENT_POWER, {"its power cables are not connected", "connect the power cables of the GPU"}},
	{NVML_DRIVER_NOT_LOADED, {"the NVIDIA driver is not loaded", "sudo modprobe nvidia"}},
	{NVML_IRQ_ISSUE, {"the kernel reports an interrupt problem of this GPU", "sudo dmesg | grep -i nvrm"}},
	{NVML_GPU_IS_LOST, {"the GPU fell off the bus", "reboot the machine"}},
	{NVML_RESET_REQUIRED, {"the GPU needs a reset", "sudo nvidia-smi --gpu-reset"}},
	{NVML_OPERATING_SYSTEM,
		{"the operating system denies access to it (cgroup or device node)",
			"give the container or the job this GPU"}},
	{NVML_VERSION_MISMATCH,
		{"the NVIDIA library and the kernel module have different versions",
			"reboot, or reload the nvidia kernel modules"}},
};

struct nvml_failure nvml_failure(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		if (failures[i].code == code)
			return failures[i].failure;
	}
	return (struct nvml_failure){"the NVIDIA driver returns an error", "nvidia-smi"};
}
