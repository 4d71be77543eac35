#include "cap/nvml.h"

#include "base/util.h"

#include <errno.h>

/* Power limits. The driver keeps one per board, in mW. It loses the limit when the last client exits, unless
 * persistence mode is on, and at every reboot. */

static const char register_name[] = "limit_mw";

static double read_w(int (*get)(nvml_device, unsigned int *), nvml_device handle)
{
	unsigned int mw;
	return get != NULL && get(handle, &mw) == NVML_SUCCESS ? mw / 1000.0 : (double)NAN;
}

static void read_range(struct cap_device *device, const struct nvml_api *api, nvml_device handle)
{
	unsigned int min_mw, max_mw;
	device->default_ = read_w(api->default_limit_mw, handle);
	if (api->limit_range_mw != NULL && api->limit_range_mw(handle, &min_mw, &max_mw) == NVML_SUCCESS) {
		device->min = min_mw / 1000.0;
		device->max = max_mw / 1000.0;
	} else {
		cap_guard_range(device);
	}
}

static void hint_persistence(struct cap_device *device, const struct nvml_api *api, nvml_device handle)
{
	int on;
	device->forgets = api->persistence != NULL && api->persistence(handle, &on) == NVML_SUCCESS && on == 0;
	if (device->forgets)
		text_copy(device->hint, sizeof(device->hint),
			"persistence mode is off: the driver resets the limit when the last program stops "
			"using the GPU; sudo nvidia-smi -pm 1");
}

bool cap_nvml_power_describe(struct cap_device *device)
{
	const struct nvml_api *api = cap_nvml_api(device);
	nvml_device handle = cap_nvml_handle(device);
	device->current = read_w(api->limit_mw, handle);
	if (isnan(device->current))
		return false;
	device->enforced = read_w(api->enforced_limit_mw, handle);
	read_range(device, api, handle);
	if (device->max <= 0) // some laptops without a limit return this
		return false;
	hint_persistence(device, api, handle);
	cap_nvml_check_permission(device, api->set_limit_mw != NULL || api->set_limit_v2 != NULL);
	return true;
}

/* ---- read and write ---- */

static int read_limit(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	const struct nvml_api *api = cap_nvml_api(device);
	nvml_device handle = cap_nvml_handle(device);
	unsigned int limit_mw = 0;
	int code = handle == NULL || api->limit_mw == NULL ? NVML_NOT_SUPPORTED : api->limit_mw(handle, &limit_mw);
	device->current = device->enforced = (double)NAN;
	if (code != NVML_SUCCESS)
		return cap_nvml_fail(device, "can't read its power limit", code, reterr);
	device->current = limit_mw / 1000.0;
	device->enforced = read_w(api->enforced_limit_mw, handle);
	cap_setting_add(ret_setting, register_name, limit_mw);
	return 0;
}

static void plan_limit(const struct cap_device *device, const struct cap_setting *before, double value,
	struct cap_setting *ret_setting)
{
	cap_setting_add(ret_setting, register_name, llround(value * 1000));
}

static int set_limit(const struct nvml_api *api, nvml_device handle, unsigned int limit_mw)
{
	struct nvml_power_value value = {NVML_POWER_VALUE_VERSION, NVML_SCOPE_GPU, limit_mw};
	if (api->set_limit_mw != NULL)
		return api->set_limit_mw(handle, limit_mw);
	return api->set_limit_v2 != NULL ? api->set_limit_v2(handle, &value) : NVML_FUNCTION_NOT_FOUND;
}

static int write_limit(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr)
{
	struct cap_setting now = {0};
	const struct cap_field *field = cap_setting_find(setting, register_name);
	if (field == NULL || field->value <= 0 || field->value > UINT32_MAX)
		return error_set(reterr, -EINVAL, "%s: no power limit to set", device->name);
	int r = read_limit(device, &now, reterr);
	if (r < 0 || now.fields[0].value == field->value)
		return r;
	int code = set_limit(cap_nvml_api(device), cap_nvml_handle(device), (unsigned int)field->value);
	return code == NVML_SUCCESS ? 0 : cap_nvml_fail(device, "can't set its power limit", code, reterr);
}

static double limit_of(const struct cap_device *device, const struct cap_setting *setting)
{
	const struct cap_field *field = cap_setting_find(setting, register_name);
	return field != NULL ? (double)field->value / 1000 : (double)NAN;
}

const struct cap_ops cap_nvml_power = {
	.wake = cap_nvml_wake,
	.read = read_limit,
	.plan = plan_limit,
	.write = write_limit,
	.value_of = limit_of,
	.scale = 1e-3,
	.step = 5000, // some boards round to 1 W, or to the nearest of a list
};
