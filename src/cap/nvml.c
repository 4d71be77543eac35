#include "cap/nvml.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* NVIDIA GPUs: one driver session for power limits and clock limits.
 *
 * Laptops: asking the driver wakes a sleeping GPU. While all GPUs sleep, their values are unknown until the user names
 * one. */

static const struct {
	const struct cap_ops *ops;
	bool (*describe)(struct cap_device *device);
	const char *absent;
} kinds[] = {
	[CAP_POWER] = {&cap_nvml_power, cap_nvml_power_describe, "it has no power limit"},
	[CAP_CLOCKS] = {&cap_nvml_clocks, cap_nvml_clocks_describe, "its clocks can't be locked"},
};

/* ---- describe ---- */

static void read_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char out[NVML_TEXT_MAX])
{
	out[0] = '\0';
	if (get == NULL || get(handle, out, NVML_TEXT_MAX) != NVML_SUCCESS)
		out[0] = '\0';
	out[NVML_TEXT_MAX - 1] = '\0';
}

// By UUID, else by PCI address, else by index in the driver's list.
static void identify(struct cap_device *device)
{
	const struct nvml_api *api = cap_nvml_api(device);
	nvml_device handle = cap_nvml_handle(device);
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

// False: the device has no such limit.
static bool describe(struct cap_device *device)
{
	identify(device);
	return kinds[device->what].describe(device);
}

/* ---- open ---- */

static int add_device(struct cap_finder *finder, struct cap_nvml *nvml, size_t index, enum cap_kind what,
	struct cap_device **ret_device)
{
	struct cap_device like = {.what = what, .ops = kinds[what].ops, .state = nvml, .index = index};
	snprintf(like.name, sizeof(like.name), "gpu-%zu", finder->n_gpus);
	*ret_device = cap_finder_add(finder, &like);
	return *ret_device != NULL ? 0 : -ENOMEM;
}

static int add_awake(struct cap_finder *finder, struct cap_nvml *nvml, size_t index, enum cap_kind what)
{
	struct cap_device *device;
	int r = add_device(finder, nvml, index, what, &device);
	if (r < 0 || describe(device))
		return r;
	if (what == CAP_POWER)
		cap_finder_explain(finder, CAP_ABSENT_BOTH, "%s (%s) has no settable power limit",
			device->name, device->label);
	finder->devices->n--;
	return 0;
}

static int add_asleep(struct cap_finder *finder, struct cap_nvml *nvml, size_t index, enum cap_kind what)
{
	struct cap_device *device;
	int r = add_device(finder, nvml, index, what, &device);
	if (r < 0)
		return r;
	cap_set_asleep(device);
	snprintf(device->label, sizeof(device->label), "NVIDIA GPU %s", nvml->bus.gpus[index].address);
	return 0;
}

static int add_gpu(struct cap_finder *finder, struct cap_nvml *nvml, unsigned int index)
{
	int r = 0, code = nvml->api.by_index(index, &nvml->handles[index]);
	if (code != NVML_SUCCESS) {
		nvml->handles[index] = NULL;
		cap_finder_explain(finder, CAP_ABSENT_BOTH, "gpu-%zu: %s", finder->n_gpus, nvml_failure(code).why);
	}
	for (enum cap_kind what = CAP_POWER; r == 0 && code == NVML_SUCCESS && what <= CAP_CLOCKS; what++)
		r = add_awake(finder, nvml, index, what);
	finder->n_gpus++;
	return r;
}

static int make_room(struct cap_nvml *nvml, size_t n)
{
	nvml->handles = calloc_array(n, sizeof(nvml_device));
	nvml->n = n;
	return nvml->handles != NULL ? 0 : -ENOMEM;
}

// Most machines without the library or the driver have no NVIDIA GPU: report it only to users who name one.
static int where_expected(const struct cap_finder *finder, const struct cap_nvml *nvml, bool is_odd)
{
	return is_odd || nvml->bus.n > 0 || finder->env->nvml != NULL ? CAP_ABSENT_BOTH : CAP_ABSENT_GPUS;
}

static int open_gpus(struct cap_finder *finder, struct cap_nvml *nvml)
{
	unsigned int count = 0;
	int code = cap_nvml_start(nvml, &count);
	if (code != NVML_SUCCESS) {
		struct nvml_failure failure = nvml_failure(code);
		cap_finder_explain(finder, where_expected(finder, nvml, code != NVML_DRIVER_NOT_LOADED),
			"NVIDIA: %s; %s", failure.why, failure.remedy);
		return 0;
	}
	if (count == 0)
		cap_finder_explain(finder, where_expected(finder, nvml, false),
			"NVIDIA: the driver reports no GPU; start the container with --gpus all, or request "
			"a GPU from the scheduler");
	int r = make_room(nvml, count);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = add_gpu(finder, nvml, i);
	return r;
}

// Numbers sleeping GPUs by bus address, as the driver does.
static int open_asleep(struct cap_finder *finder, struct cap_nvml *nvml)
{
	int r = make_room(nvml, nvml->bus.n);
	for (size_t i = 0; r == 0 && i < nvml->n; i++, finder->n_gpus++)
		for (enum cap_kind what = CAP_POWER; r == 0 && what <= CAP_CLOCKS; what++)
			r = add_asleep(finder, nvml, i, what);
	return r;
}

static void describe_woken(struct cap_device *device)
{
	device->asleep = false;
	cap_set_why(device, "", "");
	if (cap_nvml_handle(device) == NULL)
		cap_set_why(device, "the NVIDIA driver denies access", "nvidia-smi");
	else if (!describe(device))
		cap_set_why(device, kinds[device->what].absent, "");
}

static int open_nvml(struct cap_finder *finder, void **ret_state)
{
	struct wattle_error cause = {0};
	struct cap_nvml *nvml = calloc(1, sizeof(*nvml));
	*ret_state = nvml;
	if (nvml == NULL)
		return -ENOMEM;
	nvml->describe_woken = describe_woken;
	int r = nvml_bus_open(&nvml->bus, finder->env);
	if (r < 0)
		return r;
	if (nvml_api_open(&nvml->api, finder->env, &cause) < 0) {
		char why[sizeof(cause.text)];
		const char *remedy = nvml_library_failure(finder->env, &cause, why, sizeof(why));
		cap_finder_explain(finder, where_expected(finder, nvml, false), "NVIDIA: %s; %s", why, remedy);
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

const struct cap_ops cap_nvml = {
	.open = open_nvml,
	.close = close_nvml,
};
