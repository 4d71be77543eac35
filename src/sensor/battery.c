#include "sensor/sensor.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"
#include "sensor/internal.h"

#include <errno.h>
#include <stdio.h>

/* Power drawn from a laptop's batteries. It is the power of the whole machine, but only while no battery charges. The kernel
 * reports power_now (µW), or current_now and voltage_now (µA, µV), every 1 to 30 s. Some drivers report signed values. */

static const char folder[] = "class/power_supply";

enum { BATTERIES_MAX = 4 };

struct battery {
	struct file_kept status, power, current, voltage;
	char status_text[24]; // latest text read
};

struct batteries {
	struct battery each[BATTERIES_MAX];
	size_t n;
	struct domain domain; // covers all batteries
};

static bool file_equals(int root_fd, const char *name, const char *file, const char *text)
{
	char path[160], found[32];
	snprintf(path, sizeof(path), "%s/%s/%s", folder, name, file);
	return file_read_line_in(root_fd, path, found, sizeof(found)) > 0 && strcmp(found, text) == 0;
}

// Excludes the batteries of mice and headsets (scope "Device") and empty bays (a battery that is not present).
static bool feeds_machine(int root_fd, const char *name)
{
	return file_equals(root_fd, name, "type", "Battery") && !file_equals(root_fd, name, "scope", "Device") &&
		!file_equals(root_fd, name, "present", "0");
}

static void keep(struct file_kept *kept, int root_fd, const char *name, const char *file)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/%s/%s", folder, name, file);
	file_kept_open(kept, root_fd, path);
}

static void add_battery(struct batteries *all, int root_fd, const char *name)
{
	struct battery *battery = &all->each[all->n++];
	char *device = all->domain.device;
	size_t length = strlen(device);
	snprintf(device + length, sizeof(all->domain.device) - length, "%s%s", length > 0 ? " + " : "", name);
	keep(&battery->status, root_fd, name, "status");
	keep(&battery->power, root_fd, name, "power_now");
	keep(&battery->current, root_fd, name, "current_now");
	keep(&battery->voltage, root_fd, name, "voltage_now");
}

static int read_magnitude(struct file_kept *kept, double *ret_value)
{
	int64_t value;
	int r = file_kept_read_i64(kept, &value);
	if (r == 0)
		*ret_value = fabs((double)value);
	return r;
}

static int read_power_mw(struct battery *battery, double *ret_mw)
{
	double power_uw = 0, current_ua = 0, voltage_uv = 0;
	if (read_magnitude(&battery->power, &power_uw) != 0) {
		int r = read_magnitude(&battery->current, &current_ua);
		if (r == 0)
			r = read_magnitude(&battery->voltage, &voltage_uv);
		if (r != 0)
			return r;
		power_uw = current_ua * voltage_uv * 1e-6;
	}
	*ret_mw = power_uw * 1e-3;
	return power_uw > 0 ? 0 : -ENODATA; // a discharging battery that reports 0 W has no measurement yet
}

static void read_status(struct battery *battery)
{
	char text[64];
	if (file_kept_read(&battery->status, text, sizeof(text)) < 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_copy(battery->status_text, sizeof(battery->status_text), text[0] != '\0' ? text : "Unknown");
}

// Returns the status that prevents a reading, or NULL. At least one battery must be discharging, and none may be charging.
static const char *read_statuses(struct batteries *all)
{
	const char *charging = NULL;
	bool discharging = false;
	for (size_t i = 0; i < all->n; i++) {
		read_status(&all->each[i]);
		discharging |= strcmp(all->each[i].status_text, "Discharging") == 0;
		if (strcmp(all->each[i].status_text, "Charging") == 0)
			charging = all->each[i].status_text;
	}
	if (charging != NULL)
		return charging;
	return discharging ? NULL : all->each[0].status_text;
}

// Sums the power of the discharging batteries; the others are idle.
static int read_all_mw(struct batteries *all, double *ret_mw, size_t *ret_failed)
{
	double sum_mw = 0;
	for (size_t i = 0; i < all->n; i++) {
		double power_mw = 0;
		if (strcmp(all->each[i].status_text, "Discharging") != 0)
			continue;
		int r = read_power_mw(&all->each[i], &power_mw);
		*ret_failed = i;
		if (r < 0)
			return r;
		sum_mw += power_mw;
	}
	*ret_mw = sum_mw;
	return 0;
}

static void describe(struct batteries *all, const struct wattle_env *env)
{
	struct domain *d = &all->domain;
	double power_mw;
	size_t failed = 0;
	d->kind = DOMAIN_BATTERY;
	d->index = -1;
	d->provenance = PROVENANCE_DERIVED;
	text_copy(d->name, sizeof(d->name), "battery");
	const char *status = read_statuses(all);
	if (status != NULL) {
		snprintf(d->why, sizeof(d->why),
			"status is %s: a battery reports the machine's power only while it discharges", status);
		text_copy(d->remedy, sizeof(d->remedy), "unplug the charger");
		return;
	}
	int r = read_all_mw(all, &power_mw, &failed);
	d->readable = d->used = r == 0;
	if (r < 0)
		domain_set_unreadable(d, env, all->each[failed].power.path, r);
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct batteries *all = state;
	struct folder names;
	int r = folder_list(env->sysfs_fd, folder, "", &names);
	for (size_t i = 0; i < names.n && all->n < BATTERIES_MAX; i++)
		if (feeds_machine(env->sysfs_fd, names.names[i]))
			add_battery(all, env->sysfs_fd, names.names[i]);
	folder_finish(&names);
	if (all->n > 0)
		describe(all, env);
	return r < 0 ? error_set(reterr, r, "out of memory for the list of %s/%s", env->sysfs, folder) : 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct batteries *all = state;
	*ret_count = all->n > 0 ? 1 : 0;
	return &all->domain;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct batteries *all = state;
	double power_mw;
	size_t failed;
	if (all->n == 0 || !all->domain.used || context->energy_only)
		return;
	const char *status = read_statuses(all);
	if (status != NULL)
		snprintf(all->domain.note, sizeof(all->domain.note),
			"%s, so its power is not the machine's: unknown until it discharges again", status);
	else if (read_all_mw(all, &power_mw, &failed) == 0)
		rows[0][DEVICE_POWER] = llround(power_mw);
}

static void close_sensor(void *state)
{
	struct batteries *all = state;
	for (size_t i = 0; i < all->n; i++) {
		struct battery *battery = &all->each[i];
		struct file_kept *files[] = {&battery->status, &battery->power, &battery->current, &battery->voltage};
		for (size_t k = 0; k < ARRAY_SIZE(files); k++)
			file_kept_close(files[k]);
	}
	all->n = 0;
}

const struct sensor_ops sensor_battery = {
	.name = "battery",
	.state_size = sizeof(struct batteries),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
