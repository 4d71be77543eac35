// Session with NVIDIA's driver: its errors, its permissions, and waking a GPU.
#include "cap/nvml.h"

#include "base/util.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	int code, error;
} error_codes[] = {
	{NVML_NO_PERMISSION, -EACCES},
	{NVML_INVALID_ARGUMENT, -ERANGE},
	{NVML_NOT_SUPPORTED, -EOPNOTSUPP},
	{NVML_FUNCTION_NOT_FOUND, -EOPNOTSUPP},
	{NVML_GPU_IS_LOST, -ENODEV},
	{NVML_NOT_FOUND, -ENODEV},
	{NVML_GPU_NOT_FOUND, -ENODEV},
	{NVML_DRIVER_NOT_LOADED, -ENODEV},
};

static int error_code(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(error_codes); i++)
		if (error_codes[i].code == code)
			return error_codes[i].error;
	return -EIO;
}

int cap_nvml_fail(const struct cap_device *device, const char *what, int code, struct wattle_error *reterr)
{
	int error = error_code(code);
	struct nvml_failure failure = nvml_failure(code);
	if (error == -EACCES && geteuid() == 0)
		return error_set(reterr, error,
			"%s: %s: the NVIDIA driver denies this even to root, as in containers and on shared "
			"or virtual GPUs; set it on the host",
			device->name, what);
	if (error == -EACCES)
		return error_set(reterr, error,
			"%s: %s: the NVIDIA driver allows this only to root; use sudo or the helper", device->name,
			what);
	if (error == -ERANGE)
		return error_set(reterr, error, "%s: %s: the NVIDIA driver rejects that value", device->name,
			what);
	if (error == -EOPNOTSUPP)
		return error_set(reterr, error, "%s: %s: this GPU or its driver does not support this", device->name,
			what);
	return error_set(reterr, error, "%s: %s: %s (error %d of NVML); %s", device->name, what, failure.why, code,
		failure.remedy);
}

// The driver requires root, in particular CAP_SYS_ADMIN.
static bool may_administrate(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	if (geteuid() == 0)
		return true;
	return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & UINT32_C(1) << CAP_SYS_ADMIN) != 0;
}

void cap_nvml_check_permission(struct cap_device *device, bool has_call)
{
	char why[sizeof(device->why)], remedy[sizeof(device->remedy)];
	device->settable = has_call && may_administrate();
	if (device->settable)
		return;
	snprintf(why, sizeof(why), "only root can set its %s", device->what == CAP_POWER ? "power limit" : "clocks");
	snprintf(remedy, sizeof(remedy), "sudo wattle cap set %s %s", device->name,
		device->what == CAP_POWER ? "WATTS" : "--clocks MHZ");
	if (has_call)
		cap_set_why(device, why, remedy);
	else
		cap_set_why(device, "this NVIDIA driver does not support it", "install a newer NVIDIA driver");
}

/* ---- wake ---- */

int cap_nvml_start(struct cap_nvml *nvml, unsigned int *ret_count)
{
	int code = nvml->api.init();
	nvml->api.initialised = code == NVML_SUCCESS;
	return nvml->api.initialised ? nvml->api.count(ret_count) : code;
}

int cap_nvml_wake(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr)
{
	struct cap_nvml *nvml = device->state;
	unsigned int count = 0;
	int code = cap_nvml_start(nvml, &count);
	if (code != NVML_SUCCESS)
		return cap_nvml_fail(device, "can't wake it", code, reterr);
	for (unsigned int i = 0; i < count && i < nvml->n; i++)
		if (nvml->api.by_index(i, &nvml->handles[i]) != NVML_SUCCESS)
			nvml->handles[i] = NULL;
	for (size_t i = 0; i < devices->n; i++)
		if (devices->devices[i].state == nvml && devices->devices[i].asleep)
			nvml->describe_woken(&devices->devices[i]);
	return 0;
}
