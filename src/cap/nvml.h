/* State shared by power limits and clock limits of NVIDIA GPUs: one driver session, its GPUs and its error messages. */
#pragma once

#include "cap/internal.h"
#include "sensor/gpu/nvml_api.h"

struct cap_nvml {
	struct nvml_api api;
	struct nvml_bus bus;
	nvml_device *handles; // owned; indexed by NVML's index (cap_device::index); NULL if the driver refused the GPU
	size_t n;
	void (*describe_woken)(struct cap_device *device); // fills in a GPU that was asleep
};

static inline nvml_device cap_nvml_handle(const struct cap_device *device)
{
	return ((const struct cap_nvml *)device->state)->handles[device->index];
}
static inline const struct nvml_api *cap_nvml_api(const struct cap_device *device)
{
	return &((const struct cap_nvml *)device->state)->api;
}

int cap_nvml_start(struct cap_nvml *nvml, unsigned int *ret_count); // an NVML return code
// Converts a failed call to negative errno and a message. `what`: the action, such as "can't read its power limit".
int cap_nvml_fail(const struct cap_device *device, const char *what, int code, struct wattle_error *reterr);
// Fills in settable, why and remedy: whether the driver lets this process change the limit. has_call: the library has
// the function.
void cap_nvml_check_permission(struct cap_device *device, bool has_call);
// cap_ops::wake for both kinds of limits.
int cap_nvml_wake(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr);

// Fills in the values of a device whose name and handle are set; false: it has no such limit.
bool cap_nvml_power_describe(struct cap_device *device);
bool cap_nvml_clocks_describe(struct cap_device *device);
extern const struct cap_ops cap_nvml_power, cap_nvml_clocks;
