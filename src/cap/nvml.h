/* NVIDIA's GPUs as power limits and locked clocks share them: one session with the driver, its GPUs, its errors in
 * words. */
#pragma once

#include "cap/internal.h"
#include "sensor/gpu/nvml_api.h"

struct cap_nvml {
	struct nvml_api api;
	struct nvml_bus bus;
	nvml_device *handles; // owned; by NVML's index, which is cap_device::index; NULL where the driver refused it
	size_t n;
	void (*describe_woken)(struct cap_device *device); // that slept: fills it in
};

static inline nvml_device cap_nvml_handle(const struct cap_device *device)
{
	return ((const struct cap_nvml *)device->state)->handles[device->index];
}
static inline const struct nvml_api *cap_nvml_api(const struct cap_device *device)
{
	return &((const struct cap_nvml *)device->state)->api;
}

int cap_nvml_start(struct cap_nvml *nvml, unsigned int *ret_count); // a code of NVML's
// A failed call as negative errno and a sentence. what: "can't read its power limit".
int cap_nvml_fail(const struct cap_device *device, const char *what, int code, struct wattle_error *reterr);
// Fills settable, why and remedy: whether the driver would let this process. has_call: the library has the function at
// all.
void cap_nvml_ask_permission(struct cap_device *device, bool has_call);
// As cap_ops::wake, of both kinds.
int cap_nvml_wake(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr);

// Fill in the figures of a device that has its name and its handle; false: that can't be limited.
bool cap_nvml_power_describe(struct cap_device *device);
bool cap_nvml_clocks_describe(struct cap_device *device);
extern const struct cap_ops cap_nvml_power, cap_nvml_clocks;
