#include "cap/nvml.h"

#include "base/util.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Power limits of NVIDIA's GPUs. The driver keeps one limit a board, in mW; it forgets it when the last client goes, unless
 * persistence mode is on, and at a reboot always.
 *
 * Laptops: asking the driver wakes a sleeping GPU, so while all of them sleep their rows stand without figures until one of
 * them is asked for by name. */

static const char register_name[] = "limit_mw";
static const int64_t step_mw = 1000; // some boards keep whole watts

/* ---- errors and rights ---- */

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
	if (error == -EACCES)
		return error_set(reterr, error,
			"%s: %s: the NVIDIA driver lets only root do that; use sudo, or the helper", device->name,
			what);
	if (error == -ERANGE)
		return error_set(reterr, error, "%s: %s: the NVIDIA driver does not take that value", device->name,
			what);
	if (error == -EOPNOTSUPP)
		return error_set(reterr, error, "%s: %s: this GPU or its driver can't do that", device->name, what);
	return error_set(reterr, error, "%s: %s: %s (error %d of NVML); %s", device->name, what, failure.why, code,
		failure.remedy);
}

// What the driver asks for: root, of whom CAP_SYS_ADMIN is the part that counts.
static bool may_administrate(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	if (geteuid() == 0)
		return true;
	return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & UINT32_C(1) << CAP_SYS_ADMIN) != 0;
}

void cap_nvml_ask_permission(struct cap_device *device, bool has_call)
{
	char why[sizeof(device->why)], remedy[sizeof(device->remedy)];
	device->settable = has_call && may_administrate();
	if (device->settable)
		return;
	snprintf(why, sizeof(why), "only root may set its %s", device->what == CAP_POWER ? "power limit" : "clocks");
	snprintf(remedy, sizeof(remedy), "sudo wattle cap set %s %s", device->name,
		device->what == CAP_POWER ? "WATTS" : "--clocks MHZ");
	if (has_call)
		cap_set_why(device, why, remedy);
	else
		cap_set_why(device, "this NVIDIA driver has no call for it", "install a newer NVIDIA driver");
}

/* ---- describe ---- */

static double read_w(int (*get)(nvml_device, unsigned int *), nvml_device handle)
{
	unsigned int mw;
	return get != NULL && get(handle, &mw) == NVML_SUCCESS ? mw / 1000.0 : (double)NAN;
}

static void read_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char out[NVML_TEXT_MAX])
{
	out[0] = '\0';
	if (get == NULL || get(handle, out, NVML_TEXT_MAX) != NVML_SUCCESS)
		out[0] = '\0';
	out[NVML_TEXT_MAX - 1] = '\0';
}

// By UUID, else by where it is plugged in, else by its place in the driver's list.
static void identify(struct cap_device *device, const struct nvml_api *api, nvml_device handle)
{
	char text[NVML_TEXT_MAX];
	struct nvml_pci pci = {0};
	read_text(api->name, handle, text);
	text_copy(device->label, sizeof(device->label), text[0] != '\0' ? text : "NVIDIA GPU");
	read_text(api->uuid, handle, text);
	if (text[0] != '\0') {
		cap_set_id(device, "", text);
		return;
	}
	if (api->pci != NULL && api->pci(handle, &pci) == NVML_SUCCESS)
		snprintf(text, sizeof(text), "pci-%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	else
		snprintf(text, sizeof(text), "nvml-%zu", device->index);
	cap_set_id(device, "", text);
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
	if (api->persistence == NULL || api->persistence(handle, &on) != NVML_SUCCESS || on != 0)
		return;
	snprintf(device->hint, sizeof(device->hint),
		"persistence mode is off: the driver forgets a limit when the last program leaves the GPU; "
		"sudo nvidia-smi -i %zu -pm 1",
		device->index);
}

// False: this GPU has no limit. `device` has its name and number.
static bool describe(struct cap_device *device, nvml_device handle)
{
	const struct nvml_api *api = cap_nvml_api(device);
	device->asleep = false;
	identify(device, api, handle);
	device->current = read_w(api->limit_mw, handle);
	if (isnan(device->current))
		return false;
	device->enforced = read_w(api->enforced_limit_mw, handle);
	read_range(device, api, handle);
	if (device->max <= 0) // what some laptops answer where there is none
		return false;
	hint_persistence(device, api, handle);
	cap_nvml_ask_permission(device, api->set_limit_mw != NULL || api->set_limit_v2 != NULL);
	return true;
}

/* ---- open ---- */

static struct cap_device blank(struct cap_nvml *nvml, size_t index, size_t number, enum cap_what what)
{
	struct cap_device device = {
		.what = what,
		.ops = what == CAP_POWER ? &cap_nvml : &cap_nvml_clocks,
		.state = nvml,
		.index = index,
	};
	snprintf(device.name, sizeof(device.name), "gpu-%zu", number);
	return device;
}

static int add_power(struct cap_finder *finder, const struct cap_device *like)
{
	struct cap_device *device = cap_finder_add(finder, like);
	if (device == NULL)
		return -ENOMEM;
	if (!describe(device, cap_nvml_handle(device))) {
		cap_finder_explain(finder, "%s (%s) has no power limit that could be set", device->name, device->label);
		finder->devices->n--;
	}
	return 0;
}

static int add_clocks(struct cap_finder *finder, const struct cap_device *like)
{
	struct cap_device *device = cap_finder_add(finder, like);
	if (device == NULL)
		return -ENOMEM;
	identify(device, cap_nvml_api(device), cap_nvml_handle(device));
	if (!cap_nvml_clocks_describe(device))
		finder->devices->n--;
	return 0;
}

static int add_gpu(struct cap_finder *finder, struct cap_nvml *nvml, unsigned int index)
{
	size_t number = finder->n_gpus++;
	struct cap_device power = blank(nvml, index, number, CAP_POWER);
	struct cap_device clocks = blank(nvml, index, number, CAP_CLOCKS);
	int code = nvml->api.by_index(index, &nvml->handles[index]);
	if (code != NVML_SUCCESS) {
		nvml->handles[index] = NULL;
		cap_finder_explain(finder, "%s: %s", power.name, nvml_failure(code).why);
		return 0;
	}
	int r = add_power(finder, &power);
	return r == 0 ? add_clocks(finder, &clocks) : r;
}

static int start(struct cap_nvml *nvml, unsigned int *ret_count)
{
	int code = nvml->api.init();
	nvml->api.initialised = code == NVML_SUCCESS;
	return nvml->api.initialised ? nvml->api.count(ret_count) : code;
}

static int make_room(struct cap_nvml *nvml, size_t n)
{
	nvml->handles = calloc_array(n, sizeof(nvml_device));
	nvml->n = n;
	return nvml->handles != NULL ? 0 : -ENOMEM;
}

static int open_gpus(struct cap_finder *finder, struct cap_nvml *nvml)
{
	unsigned int count = 0;
	int code = start(nvml, &count);
	if (code != NVML_SUCCESS) {
		struct nvml_failure failure = nvml_failure(code);
		if (code != NVML_DRIVER_NOT_LOADED || nvml->bus.n > 0 || finder->env->nvml != NULL)
			cap_finder_explain(finder, "NVIDIA: %s; %s", failure.why, failure.remedy);
		return 0;
	}
	int r = make_room(nvml, count);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = add_gpu(finder, nvml, i);
	return r;
}

// As the bus numbers them, so does the driver.
static int open_asleep(struct cap_finder *finder, struct cap_nvml *nvml)
{
	int r = make_room(nvml, nvml->bus.n);
	for (size_t i = 0; r == 0 && i < nvml->n; i++, finder->n_gpus++)
		for (enum cap_what what = CAP_POWER; r == 0 && what <= CAP_CLOCKS; what++) {
			struct cap_device like = blank(nvml, i, finder->n_gpus, what);
			like.asleep = true;
			snprintf(like.label, sizeof(like.label), "NVIDIA GPU %s", nvml->bus.gpus[i].address);
			cap_set_why(&like, "asleep (runtime suspended), not woken",
				"start a program that uses the GPU, then look again");
			r = cap_finder_add(finder, &like) != NULL ? 0 : -ENOMEM;
		}
	return r;
}

static int open_nvml(struct cap_finder *finder, void **ret_state)
{
	struct wattle_error cause = {0};
	struct cap_nvml *nvml = calloc(1, sizeof(*nvml));
	*ret_state = nvml;
	if (nvml == NULL)
		return -ENOMEM;
	int r = nvml_bus_open(&nvml->bus, finder->env);
	if (r < 0)
		return r;
	if (nvml_api_open(&nvml->api, finder->env, &cause) < 0) {
		if (nvml->bus.n > 0 || finder->env->nvml != NULL) // most machines without it have no such GPU
			cap_finder_explain(finder, "NVIDIA: %s", cause.text);
		return 0;
	}
	return nvml_bus_all_asleep(&nvml->bus) ? open_asleep(finder, nvml) : open_gpus(finder, nvml);
}

static void close_nvml(void *state)
{
	struct cap_nvml *nvml = state;
	if (nvml == NULL)
		return;
	nvml_api_close(&nvml->api);
	nvml_bus_close(&nvml->bus);
	free(nvml->handles);
	free(nvml);
}

/* ---- wake ---- */

static void describe_woken(struct cap_device *device)
{
	nvml_device handle = cap_nvml_handle(device);
	bool power = device->what == CAP_POWER;
	device->asleep = false;
	cap_set_why(device, "", "");
	if (handle == NULL) {
		cap_set_why(device, "the NVIDIA driver refuses it", "nvidia-smi");
		return;
	}
	identify(device, cap_nvml_api(device), handle);
	if (!(power ? describe(device, handle) : cap_nvml_clocks_describe(device)))
		cap_set_why(device, power ? "it has no power limit" : "its clocks can't be locked", "");
}

int cap_nvml_wake(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr)
{
	struct cap_nvml *nvml = device->state;
	unsigned int count = 0;
	int code = start(nvml, &count);
	if (code != NVML_SUCCESS)
		return cap_nvml_fail(device, "can't wake it", code, reterr);
	for (unsigned int i = 0; i < count && i < nvml->n; i++)
		if (nvml->api.by_index(i, &nvml->handles[i]) != NVML_SUCCESS)
			nvml->handles[i] = NULL;
	for (size_t i = 0; i < devices->n; i++)
		if (devices->devices[i].state == nvml && devices->devices[i].asleep)
			describe_woken(&devices->devices[i]);
	return 0;
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

static bool default_limit(const struct cap_device *device, const struct cap_setting *now,
	struct cap_setting *ret_setting)
{
	if (isnan(device->default_))
		return false;
	plan_limit(device, now, device->default_, ret_setting);
	return true;
}

static double limit_of(const struct cap_device *device, const struct cap_setting *setting)
{
	const struct cap_field *field = cap_setting_find(setting, register_name);
	return field != NULL ? (double)field->value / 1000 : (double)NAN;
}

static int64_t step_of(const char *field)
{
	return step_mw;
}

const struct cap_ops cap_nvml = {
	.open = open_nvml,
	.close = close_nvml,
	.wake = cap_nvml_wake,
	.read = read_limit,
	.plan = plan_limit,
	.write = write_limit,
	.default_setting = default_limit,
	.value_of = limit_of,
	.step = step_of,
};
