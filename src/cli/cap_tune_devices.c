// The limited devices: by name, with their meters, and grouped under a common limit.
#include "cli/cap_tune.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "sensor/gpu_roster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- meters ---- */

static bool is_meter_of(const struct domain *domain, const struct cap_device *cap)
{
	bool same_card = domain->uuid[0] != '\0' && strcmp(domain->uuid, cap->id) == 0;
	return same_card || strcmp(domain->name, cap->name) == 0;
}

static const struct domain *find_unused(const struct tune_devices *devices, const struct cap_device *cap)
{
	for (size_t s = 0; s < devices->sensors.n_slots; s++)
		for (size_t i = 0; i < devices->sensors.slots[s].n_domains; i++)
			if (is_meter_of(&devices->sensors.slots[s].domains[i], cap))
				return &devices->sensors.slots[s].domains[i];
	return NULL;
}

static int find_meter(const struct tune_devices *devices, const struct cap_device *cap, size_t *ret_index,
	struct wattle_error *reterr)
{
	for (size_t i = 0; i < devices->sensors.n_devices; i++)
		if (is_meter_of(devices->sensors.devices[i], cap)) {
			*ret_index = i;
			return 0;
		}
	const struct domain *domain = find_unused(devices, cap);
	if (domain != NULL && domain->why[0] != '\0')
		return error_set(reterr, -ENODATA, "%s: can't read its energy: %s%s%s", cap->name, domain->why,
			domain->remedy[0] != '\0' ? "; " : "", domain->remedy);
	if (strncmp(cap->name, "gpu-", 4) == 0)
		return error_set(reterr, -ENODATA,
			"%s is not visible to the program; check CUDA_VISIBLE_DEVICES and similar variables, "
			"and `wattle sensors`",
			cap->name);
	return error_set(reterr, -ENODATA, "%s: no sensor reads its energy; `wattle sensors` shows why", cap->name);
}

const struct run_device *tune_device_of(const struct run *run, const struct domain *domain)
{
	for (size_t i = 0; i < run->n_devices; i++) {
		const struct run_device *device = &run->devices[i];
		bool same_card = domain->uuid[0] != '\0' && strcmp(domain->uuid, device->uuid) == 0;
		if (device->n > 0 && (same_card || strcmp(domain->name, device->name) == 0))
			return device;
	}
	return NULL;
}

/* ---- names ---- */

static int add(struct tune_devices *devices, struct cap_device *cap, struct wattle_error *reterr)
{
	size_t meter = 0;
	if (devices->n == TUNE_DEVICES)
		return error_set(reterr, -EINVAL, "too many devices; at most %d can be given", TUNE_DEVICES);
	if (!cap->settable)
		return error_set(reterr, -EACCES, "%s can't be limited: %s%s%s", cap->name, cap->why,
			cap->remedy[0] != '\0' ? "; " : "", cap->remedy);
	int r = find_meter(devices, cap, &meter, reterr);
	if (r < 0)
		return r;
	devices->at[devices->n++] = (struct tune_device){.cap = cap, .sensor = meter, .previous = cap->current};
	return 0;
}

static int add_all(struct tune_devices *devices, const char *names, enum cap_kind what, struct wattle_error *reterr)
{
	size_t n = 0;
	wattle_cleanup_free struct cap_device **chosen = calloc_array(devices->caps.n + 1, sizeof(*chosen));
	if (chosen == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int r = cap_devices_choose(&devices->caps, &devices->env, names, what, false, chosen, &n, reterr);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add(devices, chosen[i], reterr);
	return r;
}

/* ---- opening ---- */

static int find_holder(struct tune_devices *devices, struct wattle_error *reterr)
{
	static const char *const guard_argv[] = {"wattle", NULL};
	devices->holder = (struct cap_holder){.env = &devices->env,
		.guard = {.program = "/proc/self/exe", .argv = guard_argv, .shared = &devices->guard}};
	int r = cap_owner_self("wattle cap tune", &devices->holder.owner);
	return r < 0 ? error_set(reterr, r, "can't read this process's start time: %s", strerror(-r)) : 0;
}

int tune_devices_open(struct tune_devices *devices, const char *words, enum cap_kind what, struct wattle_error *reterr)
{
	struct sensor_options options = {.calibrate_ns = 5 * NS_PER_MS};
	*devices = (struct tune_devices){0};
	gpu_environment(&options);
	int r = env_open(&devices->env, reterr);
	if (r < 0)
		return r;
	devices->env_is_open = true;
	r = cap_devices_open(&devices->caps, &devices->env, reterr);
	if (r < 0)
		return r;
	devices->caps_are_open = true;
	r = find_holder(devices, reterr);
	if (r < 0)
		return r;
	cap_holds_describe(&devices->holder, &devices->caps);
	r = sensor_set_open(&devices->sensors, &devices->env, &options, reterr);
	if (r < 0)
		return r;
	devices->sensors_are_open = true;
	return add_all(devices, words, what, reterr);
}

void tune_devices_close(struct tune_devices *devices)
{
	for (size_t i = 0; i < devices->n; i++)
		if (devices->at[i].hold != NULL)
			cap_hold_end(devices->at[i].hold, &(struct cap_outcome){0}, NULL);
	if (devices->sensors_are_open)
		sensor_set_close(&devices->sensors);
	if (devices->caps_are_open)
		cap_devices_close(&devices->caps);
	if (devices->env_is_open)
		env_close(&devices->env);
	*devices = (struct tune_devices){0};
}

/* ---- groups ---- */

static struct tune_device *device_at(const struct tune_group *group, size_t i)
{
	return &group->devices->at[group->first + i];
}

// CPU packages may not report their default limit: then the highest limit is used, or else the current one.
static double default_of(const struct cap_device *cap)
{
	return !isnan(cap->default_) ? cap->default_ : !isnan(cap->max) ? cap->max : cap->current;
}

enum { LIMITS_DEFAULT = 8 };

// Whole watts and megahertz, as users type them.
static double rounded(const struct tune_group *group, double value)
{
	double whole = round(value);
	return whole >= group->min && whole <= group->default_ ? whole : value;
}

// Rounds to the clock steps of the devices.
double tune_group_rounded(const struct tune_group *group, double value)
{
	struct cap_device *device = device_at(group, 0)->cap;
	struct cap_setting now, next;
	value = rounded(group, value);
	if (cap_read(device, &now, NULL) < 0 || cap_plan(device, &now, value, &next, NULL) < 0)
		return value;
	double taken = cap_value_of(device, &next);
	return isnan(taken) ? value : taken;
}

static int find_limits(struct tune_group *group, const struct cap_tune_options *options, struct wattle_error *reterr)
{
	double *limits = group->limits;
	size_t n = 0, wanted = options->n_limits != VALUE_MISSING ? (size_t)options->n_limits : LIMITS_DEFAULT;
	int r = tune_candidates(group->min, group->max, group->default_, options->from_percent, wanted, limits,
		&group->n_limits);
	for (size_t i = 0; r == 0 && i < group->n_limits; i++) {
		double value = tune_group_rounded(group, limits[i]);
		if (n == 0 || value < limits[n - 1])
			limits[n++] = value;
	}
	group->n_limits = n;
	if (r == 0 && n >= 2)
		return 0;
	return error_set(reterr, -ERANGE, "%s: no limit to choose from: its range is %g to %g %s and its default %g",
		group->name, group->min, group->max, cap_kind_unit(device_at(group, 0)->cap->what), group->default_);
}

int tune_group_make(struct tune_group *group, struct tune_devices *devices, size_t first, size_t n,
	const struct cap_tune_options *options, struct wattle_error *reterr)
{
	*group = (struct tune_group){.devices = devices, .first = first, .n = n, .set = (double)NAN};
	group->min = group->max = group->default_ = (double)NAN;
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		const struct cap_device *cap = device_at(group, i)->cap;
		group->min = fmax(group->min, cap->min); // fmax and fmin ignore NaN
		group->max = fmin(group->max, cap->max);
		group->default_ = fmin(group->default_, default_of(cap));
		int length = snprintf(group->name + used, sizeof(group->name) - used, "%s%s", i > 0 ? "," : "",
			cap->name);
		used += length > 0 ? (size_t)length : 0;
		used = used < sizeof(group->name) ? used : sizeof(group->name) - 1;
	}
	return find_limits(group, options, reterr);
}

// The highest limit that has an effect on every device, if there is one.
static double trial(const struct tune_group *group)
{
	for (size_t i = 0; i < group->n_limits; i++) {
		bool differs = true;
		for (size_t k = 0; k < group->n; k++)
			differs &= !(fabs(device_at(group, k)->previous - group->limits[i]) < 1);
		if (differs)
			return group->limits[i];
	}
	return group->limits[group->n_limits - 1];
}

int tune_group_acquire(struct tune_group *group, struct wattle_error *reterr)
{
	for (size_t i = 0; i < group->n; i++) {
		struct tune_device *device = device_at(group, i);
		int r = cap_hold_open(&group->devices->holder, device->cap, &device->hold, reterr);
		if (r == 0)
			continue;
		device->hold = NULL;
		tune_group_end(group, false, NULL);
		return r;
	}
	return 0;
}

int tune_group_set(struct tune_group *group, double value, struct wattle_error *reterr)
{
	if (value == group->set)
		return 0;
	group->set = (double)NAN;
	for (size_t i = 0; i < group->n; i++) {
		struct tune_device *device = device_at(group, i);
		struct cap_outcome outcome = {0};
		int r = cap_hold_set(device->hold, value, &outcome, reterr);
		if (r < 0)
			return r;
		if (outcome.was_foreign)
			return error_set(reterr, -EBUSY, "%s", outcome.text);
	}
	group->set = value;
	return 0;
}

int tune_group_try(struct tune_group *group, struct wattle_error *reterr)
{
	return tune_group_set(group, trial(group), reterr);
}

int tune_group_check(struct tune_group *group, struct wattle_error *reterr)
{
	for (size_t i = 0; i < group->n; i++) {
		struct tune_device *device = device_at(group, i);
		struct cap_outcome outcome = {0};
		int r = device->hold != NULL ? cap_hold_check(device->hold, &outcome) : 0;
		if (r == 0)
			continue;
		const char *text = outcome.text[0] != '\0' ? outcome.text
			: r > 0                            ? "another program changed the limit; it was left unchanged"
							   : strerror(-r);
		error_set(reterr, r > 0 ? -EBUSY : r, "%s%s%s", outcome.text[0] != '\0' ? "" : device->cap->name,
			outcome.text[0] != '\0' ? "" : ": ", text);
		return r;
	}
	return 0;
}

int tune_group_end(struct tune_group *group, bool keep, struct wattle_error *reterr)
{
	int result = 0;
	for (size_t i = 0; i < group->n; i++) {
		struct tune_device *device = device_at(group, i);
		struct cap_outcome outcome = {0};
		if (device->hold == NULL)
			continue;
		int r = keep ? cap_hold_keep(device->hold, reterr) : cap_hold_end(device->hold, &outcome, reterr);
		device->hold = NULL;
		result = r < 0 ? r : result;
		if (outcome.was_foreign && outcome.text[0] != '\0')
			cli_warn(outcome.text);
	}
	group->set = (double)NAN;
	return result;
}
