#include "cap/device.h"

#include "base/suggest.h"
#include "base/num.h"
#include "base/util.h"
#include "cap/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

// In the order in which the sensors number GPUs.
static const struct cap_ops *const back_ends[] = {&cap_nvml, &cap_amdgpu, &cap_intel_gpu, &cap_powercap};

/* Under a limit of a few watts a processor is too slow to accept the command that lifts the limit. Some hardware has no
 * minimum and takes any number, so wattle sets its own. */
static const double min_share = 0.1, min_w = 5;
// Limits below 1 W are not plausible for any device. RAPL registers hold 15 bits of 1/8 W; larger values wrap around.
static const double plausible_min_w = 1, plausible_max_w = 4095.875;

const char *const cap_kind_names[] = {[CAP_POWER] = "power", [CAP_CLOCKS] = "clocks", NULL};

const char *cap_kind_name(enum cap_kind what)
{
	return cap_kind_names[what];
}

const char *cap_kind_unit(enum cap_kind what)
{
	return what == CAP_POWER ? "W" : "MHz";
}

/* ---- functions for back ends ---- */

struct cap_device *cap_finder_add(struct cap_finder *finder, const struct cap_device *like)
{
	struct cap_devices *devices = finder->devices;
	struct cap_device *larger = realloc_array(devices->devices, devices->n + 1, sizeof(*larger));
	if (larger == NULL)
		return NULL;
	devices->devices = larger;
	struct cap_device *device = &larger[devices->n++];
	*device = *like;
	device->current = device->default_ = device->min = device->max = device->enforced = device->before = (double)
		NAN;
	return device;
}

__attribute__((format(printf, 3, 0))) static void add_sentence(char *text, size_t size, const char *format,
	va_list args)
{
	size_t length = strlen(text);
	if (length > 0)
		length += (size_t)snprintf(text + length, size - length, "; ");
	if (length < size)
		vsnprintf(text + length, size - length, format, args);
}

void cap_finder_explain(struct cap_finder *finder, int where, const char *format, ...)
{
	struct cap_devices *devices = finder->devices;
	va_list args;
	va_start(args, format);
	if ((where & CAP_ABSENT) != 0)
		add_sentence(devices->absent, sizeof(devices->absent), format, args);
	va_end(args);
	va_start(args, format);
	if ((where & CAP_ABSENT_GPUS) != 0)
		add_sentence(devices->absent_gpus, sizeof(devices->absent_gpus), format, args);
	va_end(args);
}

void cap_set_why(struct cap_device *device, const char *why, const char *remedy)
{
	device->settable = false;
	text_copy(device->why, sizeof(device->why), why);
	text_copy(device->remedy, sizeof(device->remedy), remedy);
}

void cap_set_asleep(struct cap_device *device)
{
	char remedy[sizeof(device->remedy)];
	snprintf(remedy, sizeof(remedy), "wattle cap get %s", device->name); // naming a device wakes it
	device->asleep = true;
	cap_set_why(device, "suspended (runtime power management): not read, to avoid waking it", remedy);
}

void cap_set_id(struct cap_device *device, const char *prefix, const char *text)
{
	snprintf(device->id, sizeof(device->id), "%s%s", prefix, text);
	for (char *c = device->id; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && (strchr(":-_", *c) == NULL) && (*c != '.' || c == device->id))
			*c = '_';
}

void cap_setting_add(struct cap_setting *setting, const char *name, int64_t value)
{
	struct cap_field *field = &setting->fields[setting->n++];
	text_copy(field->name, sizeof(field->name), name);
	field->value = value;
}

const struct cap_field *cap_setting_find(const struct cap_setting *setting, const char *name)
{
	for (size_t i = 0; i < setting->n; i++)
		if (strcmp(setting->fields[i].name, name) == 0)
			return &setting->fields[i];
	return NULL;
}

// fmax ignores NaN: 5 W if nothing is known.
static double least(const struct cap_device *device, double before)
{
	return fmax(min_w, min_share * (isnan(device->default_) ? before : device->default_));
}

void cap_guard_range(struct cap_device *device)
{
	device->min = least(device, device->current);
	device->min_is_ours = true;
	if (isnan(device->max))
		device->max = fmax(device->default_, device->current);
}

/* ---- finding devices ---- */

// The journal identifies devices by id: two GPUs with one UUID (a driver bug) must not be confused.
static void make_ids_unique(struct cap_devices *devices)
{
	for (size_t i = 0; i < devices->n; i++)
		for (size_t before = 0; before < i; before++) {
			struct cap_device *device = &devices->devices[i];
			const struct cap_device *other = &devices->devices[before];
			if (device->id[0] != '\0' && device->what == other->what && strcmp(device->id, other->id) == 0)
				cap_set_id(device, device->name, "");
		}
}

int cap_devices_open(struct cap_devices *ret_devices, const struct wattle_env *env, struct wattle_error *reterr)
{
	*ret_devices = (struct cap_devices){0};
	struct cap_finder finder = {.env = env, .devices = ret_devices};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(back_ends); i++) {
		struct cap_backend *back_end = &ret_devices->backends[ret_devices->n_backends++];
		back_end->ops = back_ends[i];
		r = back_ends[i]->open(&finder, &back_end->state);
	}
	make_ids_unique(ret_devices);
	return r < 0 ? error_set(reterr, r, "out of memory for the list of devices") : 0;
}

void cap_devices_close(struct cap_devices *devices)
{
	for (size_t i = 0; i < devices->n_backends; i++)
		devices->backends[i].ops->close(devices->backends[i].state);
	free(devices->devices);
	*devices = (struct cap_devices){0};
}

static bool is_named(const struct cap_device *device, const char *name)
{
	return strcmp(device->name, name) == 0 || strcasecmp(device->id, name) == 0;
}

// Requires some digits after "GPU-".
static bool begins(const struct cap_device *device, const char *name)
{
	return strncasecmp(name, "GPU-", 4) == 0 && name[4] != '\0' && strncasecmp(device->id, name, strlen(name)) == 0;
}

static struct cap_device *find(const struct cap_devices *devices, const char *name, enum cap_kind what)
{
	struct cap_device *found = NULL;
	for (size_t i = 0; i < devices->n; i++) {
		struct cap_device *device = &devices->devices[i];
		if (device->what != what)
			continue;
		if (is_named(device, name))
			return device;
		if (begins(device, name) && found != NULL)
			return NULL; // ambiguous
		if (begins(device, name))
			found = device;
	}
	return found;
}

static struct cap_device *first_asleep(const struct cap_devices *devices)
{
	for (size_t i = 0; i < devices->n; i++)
		if (devices->devices[i].asleep && devices->devices[i].id[0] == '\0')
			return &devices->devices[i];
	return NULL;
}

// A wrong number is not a typing error: do not suggest gpu-0 for gpu-1.
static bool differs_in_number(const char *name, const char *other)
{
	size_t length = strcspn(name, "0123456789");
	return length == strcspn(other, "0123456789") && strncmp(name, other, length) == 0;
}

static const char *meant_device(const struct cap_devices *devices, const char *name, enum cap_kind what,
	char out[SUGGEST_WORD_MAX + 32])
{
	struct suggest suggest;
	suggest_begin(&suggest, name, strlen(name));
	for (size_t i = 0; i < devices->n; i++)
		if (devices->devices[i].what == what && !differs_in_number(name, devices->devices[i].name))
			suggest_offer(&suggest, devices->devices[i].name, strlen(devices->devices[i].name));
	return suggest_text(&suggest, "", out);
}

static int fail_not_found(const struct cap_devices *devices, const char *name, enum cap_kind what,
	struct wattle_error *reterr)
{
	char list[300] = "";
	size_t length = 0;
	for (size_t i = 0; i < devices->n; i++)
		if (devices->devices[i].what == what && length < sizeof(list))
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", length > 0 ? ", " : "",
				devices->devices[i].name);
	bool is_gpu = strncasecmp(name, "gpu-", 4) == 0;
	char meant[SUGGEST_WORD_MAX + 32];
	const char *why = is_gpu ? devices->absent_gpus : list[0] == '\0' ? devices->absent : "";
	if (list[0] == '\0')
		return error_set(reterr, -ENODEV,
			"no device '%s': this machine has no device with a settable limit of %s%s%s", name,
			cap_kind_name(what), why[0] != '\0' ? ": " : "", why);
	return error_set(reterr, -ENODEV, "no device '%s' with a limit of %s%s; valid are: %s%s%s", name,
		cap_kind_name(what), meant_device(devices, name, what, meant), list, why[0] != '\0' ? "; " : "", why);
}

int cap_devices_find(struct cap_devices *devices, const char *name, enum cap_kind what, struct cap_device **ret_device,
	struct wattle_error *reterr)
{
	struct cap_device *device = find(devices, name, what);
	// The UUID of a sleeping GPU is unknown, so it may be the named one.
	struct cap_device *asleep_device = device != NULL ? device : first_asleep(devices);
	if (asleep_device != NULL && asleep_device->asleep && (device != NULL || strncasecmp(name, "GPU-", 4) == 0)) {
		int r = asleep_device->ops->wake(asleep_device, devices, reterr);
		if (r < 0)
			return r;
		device = find(devices, name, what);
	}
	if (device == NULL)
		return fail_not_found(devices, name, what, reterr);
	*ret_device = device;
	return 0;
}

/* ---- read, plan, write ---- */

int cap_read(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	struct cap_setting setting = {0};
	int r = device->ops->read(device, &setting, reterr);
	if (r == 0)
		*ret_setting = setting;
	return r;
}

static void number(char out[32], double value)
{
	num_format_double(out, 32, round(value * 1000) / 1000);
}

struct range {
	double min, max;
};

// The previous limit may always be set again. If the device has no default, the minimum derives from the previous
// limit.
static struct range find_range(const struct cap_device *device, const struct cap_setting *before)
{
	double value = cap_value_of(device, before);
	return (struct range){
		.min = device->min_is_ours ? least(device, value) : device->min,
		.max = fmax(device->max, value),
	};
}

static int fail_range(const struct cap_device *device, double value, struct range range, struct wattle_error *reterr)
{
	char asked[32], min[32], max[32];
	const char *unit = cap_kind_unit(device->what);
	const char *ours = device->min_is_ours ? " (the minimum is wattle's own: this device reports none)" : "";
	number(asked, value);
	number(min, range.min);
	number(max, range.max);
	if (isnan(value) || isnan(range.min) || isnan(range.max))
		return error_set(reterr, -ERANGE, "%s: %s %s is not a valid limit", device->name, asked, unit);
	return error_set(reterr, -ERANGE, "%s: %s %s is out of range; give %s to %s %s%s", device->name, asked,
		unit, min, max, unit, ours);
}

int cap_plan(struct cap_device *device, const struct cap_setting *before, double value, struct cap_setting *ret_setting,
	struct wattle_error *reterr)
{
	// Compare in thousandths, the resolution of the registers: 99.9999 W counts as 100 W for a minimum of 100 W.
	double rounded = round(value * 1000) / 1000;
	struct range range = find_range(device, before);
	if (!(rounded > 0) || !(rounded < 1e6) || rounded < range.min || rounded > range.max)
		return fail_range(device, value, range, reterr);
	struct cap_setting setting = {0};
	device->ops->plan(device, before, rounded, &setting);
	*ret_setting = setting;
	return 0;
}

int cap_write(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr)
{
	return device->ops->write(device, setting, reterr);
}

int cap_default_setting(struct cap_device *device, const struct cap_setting *now, struct cap_setting *ret_setting,
	struct wattle_error *reterr)
{
	struct cap_setting setting = {0};
	const struct cap_ops *ops = device->ops;
	bool is_known = ops->default_setting != NULL ? ops->default_setting(device, now, &setting)
						     : !isnan(device->default_);
	if (is_known && ops->default_setting == NULL)
		ops->plan(device, now, device->default_, &setting);
	if (!is_known)
		return error_set(reterr, -ENODATA, "%s does not report its default limit", device->name);
	*ret_setting = setting;
	return 0;
}

const char *cap_file_of(const struct cap_device *device, size_t i)
{
	return device->ops->file != NULL ? device->ops->file(device, i) : NULL;
}

static bool is_switch(const struct cap_device *device, const char *field)
{
	const char *end = device->ops->not_limits;
	size_t length = strlen(field), least = end != NULL ? strlen(end) : 0;
	return end != NULL && length >= least && strcmp(field + length - least, end) == 0;
}

static int64_t bound(const struct cap_device *device, const struct cap_field *field)
{
	double scale = device->ops->scale, value = (double)field->value * scale;
	if (is_switch(device, field->name))
		return field->value != 0;
	if (field->value == 0 && device->ops->zero_is_none)
		return 0;
	bool is_stated = !device->min_is_ours && !isnan(device->min) && !isnan(device->max);
	double min = isnan(device->min) ? min_w : device->min;
	double max = is_stated ? device->max : plausible_max_w;
	if (value < (is_stated ? min : plausible_min_w))
		return llround(min / scale);
	return value > max ? llround(max / scale) : field->value;
}

bool cap_setting_bound(const struct cap_device *device, struct cap_setting *setting)
{
	bool changed = false;
	for (size_t i = 0; i < setting->n; i++) {
		int64_t value = bound(device, &setting->fields[i]);
		changed = changed || value != setting->fields[i].value;
		setting->fields[i].value = value;
	}
	return changed;
}

double cap_value_of(const struct cap_device *device, const struct cap_setting *setting)
{
	return device->ops->value_of(device, setting);
}

bool cap_field_matches(const struct cap_device *device, const char *field, int64_t asked, int64_t found)
{
	int64_t step = device->ops->step > 0 && !is_switch(device, field) ? device->ops->step : 1;
	return asked - found < step && found - asked < step;
}

bool cap_reads_back(const struct cap_device *device)
{
	return !device->ops->is_write_only;
}
