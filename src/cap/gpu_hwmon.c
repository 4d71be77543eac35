#include "base/util.h"
#include "cap/internal.h"
#include "sensor/gpu/drm_cards.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <stdio.h>

/* Power limits of AMD and Intel GPUs: files of the driver's hwmon interface, in µW.
 *
 * Reading any of them wakes a runtime-suspended GPU, as in laptops. The values of such a GPU are unknown until the user
 * names it. */

struct brand {
	const struct cap_ops *ops;
	uint32_t vendor;
	const char *const *limits; // first existing name is used; NULL-terminated
	const char *burst;         // additional limit for short peaks; NULL: none
	const char *default_, *min, *max;
};

/* amdgpu: old kernels report a minimum of 0, which the firmware rejects; power1_cap_default needs Linux 5.12.
 * i915 has power1_max. xe has it for the card, or only power2_max for the package. 0 switches the limit off. power1_cap
 * is xe's limit for bursts (Linux 6.15); power1_rated_max is the limit after power-on. */
static const char *const amd_limits[] = {"power1_cap", NULL};
static const char *const intel_limits[] = {"power1_max", "power2_max", NULL};
static const struct brand amd = {&cap_amdgpu, DRM_AMD, amd_limits, NULL, "power1_cap_default", "power1_cap_min",
	"power1_cap_max"};
static const struct brand intel = {&cap_intel_gpu, DRM_INTEL, intel_limits, "power1_cap", "power1_rated_max", NULL,
	NULL};

struct card {
	struct drm_card found;
	struct cap_files files;
	int limit, burst; // index in files; -1: none
};

struct gpu_caps {
	const struct wattle_env *env; // borrowed
	const struct brand *brand;
	struct card *cards; // owned; indexed by cap_device::index
	size_t n;
};

static struct card *card_of(const struct cap_device *device)
{
	return &((const struct gpu_caps *)device->state)->cards[device->index];
}

/* ---- finding devices ---- */

static bool is_asleep(const struct wattle_env *env, const struct drm_card *card)
{
	struct drm_power power;
	drm_power_open(&power, env, card->device);
	bool asleep = drm_power_sleeps(&power);
	drm_power_close(&power);
	return asleep;
}

static void find_registers(struct card *card, const struct wattle_env *env, const struct brand *brand)
{
	const char *hwmon = card->found.hwmon;
	card->files.n = 0;
	card->limit = card->burst = -1;
	for (const char *const *name = brand->limits; *name != NULL && hwmon[0] != '\0' && card->limit < 0; name++)
		card->limit = cap_files_add(&card->files, env, hwmon, *name, "");
	if (card->limit >= 0 && brand->burst != NULL)
		card->burst = cap_files_add(&card->files, env, hwmon, brand->burst, "");
}

// In W; NaN if the file is missing or reads 0, which is not a limit.
static double read_w(const struct wattle_env *env, const struct card *card, const char *name)
{
	int64_t uw = name != NULL ? gauge_read_once(env->sysfs_fd, card->found.hwmon, name) : VALUE_MISSING;
	return uw > 0 ? (double)uw / 1e6 : (double)NAN;
}

// False: the card has no limit.
static bool describe(struct cap_device *device)
{
	struct gpu_caps *caps = device->state;
	struct card *card = card_of(device);
	struct cap_setting now = {0};
	find_registers(card, caps->env, caps->brand);
	if (card->limit < 0 || cap_read(device, &now, NULL) < 0)
		return false;
	device->default_ = read_w(caps->env, card, caps->brand->default_);
	device->min = read_w(caps->env, card, caps->brand->min);
	device->max = read_w(caps->env, card, caps->brand->max);
	if (isnan(device->min))
		cap_guard_range(device);
	cap_files_check_permission(&card->files, caps->env, device);
	return true;
}

static int add_card(struct cap_finder *finder, struct gpu_caps *caps, const struct drm_card *found)
{
	caps->cards[caps->n].found = *found;
	struct cap_device like = {.what = CAP_POWER, .ops = caps->brand->ops, .state = caps, .index = caps->n++};
	snprintf(like.name, sizeof(like.name), "gpu-%zu", finder->n_gpus++);
	drm_card_describe(caps->env, found, like.label, sizeof(like.label));
	cap_set_id(&like, "pci-", found->pci[0] != '\0' ? found->pci : found->name);
	struct cap_device *device = cap_finder_add(finder, &like);
	if (device == NULL)
		return -ENOMEM;
	if (is_asleep(caps->env, found)) {
		cap_set_asleep(device);
	} else if (!describe(device)) {
		cap_finder_explain(finder, CAP_ABSENT_BOTH, "%s (%s) has no settable power limit",
			device->name, device->label);
		finder->devices->n--;
	}
	return 0;
}

static int open_brand(struct cap_finder *finder, const struct brand *brand, void **ret_state)
{
	struct drm_cards found;
	struct gpu_caps *caps = calloc(1, sizeof(*caps));
	*ret_state = caps;
	if (caps == NULL)
		return -ENOMEM;
	int r = drm_cards_find(finder->env, brand->vendor, &found);
	*caps = (struct gpu_caps){finder->env, brand, calloc_array(found.n, sizeof(*caps->cards)), 0};
	if (caps->cards == NULL)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < found.n; i++)
		if (drm_card_is_gpu(&found.cards[i]))
			r = add_card(finder, caps, &found.cards[i]);
	drm_cards_finish(&found);
	return r;
}

static int open_amd(struct cap_finder *finder, void **ret_state)
{
	return open_brand(finder, &amd, ret_state);
}

static int open_intel(struct cap_finder *finder, void **ret_state)
{
	return open_brand(finder, &intel, ret_state);
}

static void close_cards(void *state)
{
	struct gpu_caps *caps = state;
	if (caps != NULL)
		free(caps->cards);
	free(caps);
}

// The kernel wakes a card when one of its files is read.
static int wake(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr)
{
	device->asleep = false;
	cap_set_why(device, "", "");
	if (!describe(device))
		cap_set_why(device, "it has no power limit", "");
	return 0;
}

/* ---- read, plan, write ---- */

static double limit_of(const struct cap_device *device, const struct cap_setting *setting)
{
	const struct card *card = card_of(device);
	int64_t uw = cap_files_value(&card->files, card->limit, setting);
	return uw > 0 ? (double)uw / 1e6 : (double)NAN;
}

static int read_card(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	const struct gpu_caps *caps = device->state;
	const struct card *card = card_of(device);
	device->current = (double)NAN;
	if (card->limit < 0)
		return error_set(reterr, -EOPNOTSUPP, "%s has no settable power limit", device->name);
	int r = cap_files_read(&card->files, caps->env, device, ret_setting, reterr);
	if (r == 0)
		device->current = limit_of(device, ret_setting);
	return r;
}

static void plan_card(const struct cap_device *device, const struct cap_setting *before, double value,
	struct cap_setting *ret_setting)
{
	const struct card *card = card_of(device);
	int64_t limit_uw = llround(value * 1e6);
	int64_t burst_uw = cap_files_value(&card->files, card->burst, before);
	cap_setting_add(ret_setting, card->files.files[card->limit].name, limit_uw);
	if (value_ok(burst_uw) && burst_uw > limit_uw) // bursts above the limit would defeat it
		cap_setting_add(ret_setting, card->files.files[card->burst].name, limit_uw);
}

static int write_card(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr)
{
	const struct gpu_caps *caps = device->state;
	return cap_files_write(&card_of(device)->files, caps->env, device, setting, reterr);
}

// The folder, because the registers of a suspended card are not known yet.
static const char *file_of(const struct cap_device *device, size_t i)
{
	const char *hwmon = card_of(device)->found.hwmon;
	return i == 0 && hwmon[0] != '\0' ? hwmon : NULL;
}

// amdgpu has a resolution of 1 W, Intel GPUs of 1/8 W.
#define OPS(open_, step_uw, zero_is_none_)                                                                             \
	{                                                                                                              \
		.open = open_, .close = close_cards, .wake = wake, .read = read_card, .plan = plan_card,               \
		.write = write_card, .value_of = limit_of, .file = file_of, .scale = 1e-6,                             \
		.zero_is_none = zero_is_none_, .step = step_uw                                                         \
	}
const struct cap_ops cap_amdgpu = OPS(open_amd, 1000000, false);
const struct cap_ops cap_intel_gpu = OPS(open_intel, 125000, true);
#undef OPS
