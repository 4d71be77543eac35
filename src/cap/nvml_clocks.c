#include "cap/nvml.h"

#include "base/util.h"

#include <errno.h>

/* Locked graphics clocks (Volta and newer), used as an upper bound: the range is from the GPU's lowest clock to the
 * limit. Below the range of power limits, lower clocks save more than a lower power limit.
 *
 * The driver accepts a lock but can't report it, so it can't be compared: after a lease the clocks are unlocked. The
 * register is therefore 0 when nothing is locked. */

static const char register_name[] = "max_graphics_mhz";
enum { CLOCKS_MAX = 1024 };

// Reads the graphics clocks supported at the memory clock used under load, which is the highest.
static bool read_supported(const struct nvml_api *api, nvml_device handle, struct cap_device *device)
{
	unsigned int memory[CLOCKS_MAX], graphics[CLOCKS_MAX], n = CLOCKS_MAX, highest = 0;
	if (api->memory_clocks_mhz == NULL || api->graphics_clocks_mhz == NULL ||
		api->memory_clocks_mhz(handle, &n, memory) != NVML_SUCCESS || n > CLOCKS_MAX)
		return false;
	for (unsigned int i = 0; i < n; i++)
		highest = memory[i] > highest ? memory[i] : highest;
	n = CLOCKS_MAX;
	if (api->graphics_clocks_mhz(handle, highest, &n, graphics) != NVML_SUCCESS || n == 0 || n > CLOCKS_MAX)
		return false;
	for (unsigned int i = 0; i < n; i++) { // fmin and fmax ignore the initial NaN
		device->min = fmin(device->min, graphics[i]);
		device->max = fmax(device->max, graphics[i]);
	}
	return true;
}

bool cap_nvml_clocks_describe(struct cap_device *device)
{
	const struct nvml_api *api = cap_nvml_api(device);
	if (!read_supported(api, cap_nvml_handle(device), device))
		return false;
	device->default_ = device->max; // clocks are unlocked after power-on
	cap_nvml_check_permission(device, api->lock_clocks_mhz != NULL && api->unlock_clocks != NULL);
	text_copy(device->hint, sizeof(device->hint),
		"the driver does not report existing clock locks; such a lock is not restored afterwards");
	return true;
}

static int read_clocks(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	unsigned int mhz;
	const struct nvml_api *api = cap_nvml_api(device);
	nvml_device handle = cap_nvml_handle(device);
	if (handle == NULL)
		return cap_nvml_fail(device, "can't read its clocks", NVML_NOT_SUPPORTED, reterr);
	// Only checks that the GPU is present.
	int code = api->clock_mhz != NULL ? api->clock_mhz(handle, NVML_CLOCK_GRAPHICS, &mhz) : NVML_SUCCESS;
	if (code == NVML_GPU_IS_LOST)
		return cap_nvml_fail(device, "can't read its clocks", code, reterr);
	cap_setting_add(ret_setting, register_name, 0);
	return 0;
}

static void plan_clocks(const struct cap_device *device, const struct cap_setting *before, double value,
	struct cap_setting *ret_setting)
{
	cap_setting_add(ret_setting, register_name, llround(value));
}

static int lock(const struct cap_device *device, int64_t mhz)
{
	const struct nvml_api *api = cap_nvml_api(device);
	nvml_device handle = cap_nvml_handle(device);
	if (handle == NULL || api->lock_clocks_mhz == NULL || api->unlock_clocks == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	return mhz == 0 ? api->unlock_clocks(handle)
			: api->lock_clocks_mhz(handle, (unsigned int)device->min, (unsigned int)mhz);
}

static int write_clocks(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr)
{
	const struct cap_field *field = cap_setting_find(setting, register_name);
	if (field == NULL || field->value < 0 || field->value > UINT32_MAX)
		return error_set(reterr, -EINVAL, "%s: no clock to set", device->name);
	int code = lock(device, field->value);
	return code == NVML_SUCCESS ? 0 : cap_nvml_fail(device, "can't set its clocks", code, reterr);
}

static bool default_clocks(const struct cap_device *device, const struct cap_setting *now,
	struct cap_setting *ret_setting)
{
	cap_setting_add(ret_setting, register_name, 0);
	return true;
}

static double clock_of(const struct cap_device *device, const struct cap_setting *setting)
{
	const struct cap_field *field = cap_setting_find(setting, register_name);
	return field != NULL && field->value > 0 ? (double)field->value : (double)NAN;
}

const struct cap_ops cap_nvml_clocks = {
	.is_write_only = true,
	.wake = cap_nvml_wake,
	.read = read_clocks,
	.plan = plan_clocks,
	.write = write_clocks,
	.default_setting = default_clocks,
	.value_of = clock_of,
	.scale = 1,
	.zero_is_none = true,
};
