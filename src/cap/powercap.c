#include "base/file.h"
#include "base/util.h"
#include "cap/internal.h"
#include "sensor/internal.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <stdio.h>

/* Power limits of CPU packages: the constraints of the kernel's intel_rapl zones.
 *
 * A package has a limit of its mean power over some seconds (long_term) and one for bursts (short_term). Both apply
 * only if `enabled` is 1. Laptops have a second set of registers for package 0 (intel-rapl-mmio); both sets apply and
 * the lower limit wins. The peak limit (peak_power) protects the power supply and is left alone. */

static const char mmio_type[] = "intel-rapl-mmio";

// Registers of one zone, as indices into the files of its package; -1: none.
struct limits {
	int long_term, short_term, enabled;
};

enum { ZONES = 2 }; // the package and its second register set

struct package {
	struct cap_files files;
	struct limits zones[ZONES];
	size_t n_zones;
};

struct powercap_caps {
	const struct wattle_env *env; // borrowed
	struct package *packages;     // owned; indexed by cap_device::index
	size_t n;
};

static const struct package *package_of(const struct cap_device *device)
{
	return &((const struct powercap_caps *)device->state)->packages[device->index];
}

/* ---- finding devices ---- */

// Index of the constraint with this name: it varies, because absent constraints are skipped. -1: none.
static int find_constraint(const struct wattle_env *env, const struct zone *zone, const char *wanted)
{
	char path[sizeof(zone->path) + 32], name[40];
	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "%s/constraint_%d_name", zone->path, i);
		if (file_read_line_in(env->sysfs_fd, path, name, sizeof(name)) < 0)
			return -1;
		if (strcmp(name, wanted) == 0)
			return i;
	}
	return -1;
}

static int add_limit(struct package *package, const struct wattle_env *env, const struct zone *zone, const char *name,
	const char *prefix)
{
	char file[48];
	int constraint = find_constraint(env, zone, name);
	if (constraint < 0)
		return -1;
	snprintf(file, sizeof(file), "constraint_%d_power_limit_uw", constraint);
	return cap_files_add(&package->files, env, zone->path, file, prefix);
}

// False: the zone has no limit (AMD zones have none).
static bool add_zone(struct package *package, const struct wattle_env *env, const struct zone *zone)
{
	char prefix[sizeof(zone->id) + 2];
	snprintf(prefix, sizeof(prefix), "%s/", zone->id);
	struct limits limits = {.long_term = add_limit(package, env, zone, "long_term", prefix)};
	if (limits.long_term < 0)
		return false;
	limits.short_term = add_limit(package, env, zone, "short_term", prefix);
	limits.enabled = cap_files_add(&package->files, env, zone->path, "enabled", prefix);
	package->zones[package->n_zones++] = limits;
	return true;
}

static double rated_w(const struct wattle_env *env, const struct zone *zone)
{
	char path[sizeof(zone->path) + 40];
	uint64_t max_uw;
	snprintf(path, sizeof(path), "%s/constraint_%d_max_power_uw", zone->path,
		find_constraint(env, zone, "long_term"));
	// ENODATA is usual; 0 means the same.
	return file_read_u64_in(env->sysfs_fd, path, &max_uw) == 0 && max_uw > 0 ? (double)max_uw / 1e6 : (double)NAN;
}

static void describe(struct cap_device *device, const struct wattle_env *env, const struct zone *zone)
{
	struct cap_setting now = {0};
	cap_files_check_permission(&package_of(device)->files, env, device);
	device->default_ = rated_w(env, zone);
	(void)cap_read(device, &now, NULL); // updates `current`; errors are reported when the device is used
	cap_guard_range(device);
}

static int add_package(struct cap_finder *finder, struct powercap_caps *caps, const struct zone *zone,
	const struct domain *domain)
{
	struct package *package = &caps->packages[caps->n];
	if (!add_zone(package, finder->env, zone))
		return 0;
	struct cap_device like = {.what = CAP_POWER, .ops = &cap_powercap, .state = caps, .index = caps->n++};
	text_copy(like.name, sizeof(like.name), domain->name);
	text_copy(like.label, sizeof(like.label), zone->id);
	cap_set_id(&like, "", domain->name);
	return cap_finder_add(finder, &like) != NULL ? 0 : -ENOMEM;
}

static struct cap_device *find_added(struct cap_finder *finder, const struct powercap_caps *caps, const char *name)
{
	for (size_t i = 0; i < finder->devices->n; i++) {
		struct cap_device *device = &finder->devices->devices[i];
		if (device->state == caps && strcmp(device->name, name) == 0)
			return device;
	}
	return NULL;
}

// Zones are numbered in registration order: package 1 may be intel-rapl:0.
static int by_name(const void *left, const void *right)
{
	return strverscmp(((const struct cap_device *)left)->name, ((const struct cap_device *)right)->name);
}

static int add_packages(struct cap_finder *finder, struct powercap_caps *caps, const struct zone_list *list,
	struct domain *domains)
{
	for (size_t i = 0; i < list->n; i++)
		domains[i].readable = domains[i].used = true; // limits do not depend on readable counters
	powercap_name_domains(list->zones, domains, list->n, cpu_dies_share_counter(finder->env));
	int r = 0;
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct zone *zone = &list->zones[i];
		if (domains[i].kind != DOMAIN_PACKAGE)
			continue;
		struct cap_device *same_package = find_added(finder, caps, domains[i].name);
		if (same_package == NULL)
			r = add_package(finder, caps, zone, &domains[i]);
		else if (strcmp(zone->type, mmio_type) == 0 && caps->packages[same_package->index].n_zones < ZONES)
			add_zone(&caps->packages[same_package->index], finder->env, zone);
	}
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		struct cap_device *device = find_added(finder, caps, domains[i].name);
		if (device != NULL && strcmp(device->label, list->zones[i].id) == 0)
			describe(device, finder->env, &list->zones[i]);
	}
	return r;
}

static int open_zones(struct cap_finder *finder, struct powercap_caps *caps, const struct zone_list *list)
{
	struct domain *domains = calloc_array(list->n, sizeof(*domains));
	caps->packages = calloc_array(list->n, sizeof(*caps->packages));
	size_t first = finder->devices->n;
	int r = domains != NULL && caps->packages != NULL ? add_packages(finder, caps, list, domains) : -ENOMEM;
	if (r == 0 && caps->n > 1)
		qsort(&finder->devices->devices[first], caps->n, sizeof(finder->devices->devices[0]), by_name);
	free(domains);
	return r;
}

static int open_powercap(struct cap_finder *finder, void **ret_state)
{
	struct zone_list list;
	struct powercap_caps *caps = calloc(1, sizeof(*caps));
	*ret_state = caps;
	if (caps == NULL)
		return -ENOMEM;
	caps->env = finder->env;
	int r = zone_list_find(finder->env->sysfs_fd, &list);
	zone_list_keep(&list, powercap_zone_is_known);
	if (r == 0 && list.n > 0)
		r = open_zones(finder, caps, &list);
	if (r == 0 && caps->n == 0)
		cap_finder_explain(finder, CAP_ABSENT, "CPU packages: %s",
			list.n > 0 ? "this CPU's driver has no power limits"
				   : "the kernel lists none in class/powercap (a virtual machine, or intel_rapl is not loaded)");
	zone_list_finish(&list);
	return r;
}

static void close_powercap(void *state)
{
	struct powercap_caps *caps = state;
	if (caps != NULL)
		free(caps->packages);
	free(caps);
}

/* ---- read, plan, write ---- */

static bool is_on(const struct package *package, const struct limits *limits, const struct cap_setting *setting)
{
	return cap_files_value(&package->files, limits->enabled, setting) != 0;
}

static double limit_of(const struct cap_device *device, const struct cap_setting *setting)
{
	const struct package *package = package_of(device);
	double lowest = (double)NAN;
	for (size_t i = 0; i < package->n_zones; i++) {
		int64_t long_uw = cap_files_value(&package->files, package->zones[i].long_term, setting);
		if (is_on(package, &package->zones[i], setting))
			lowest = fmin(lowest, value_to_double(long_uw, 1e-6));
	}
	return lowest;
}

static int read_package(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	const struct powercap_caps *caps = device->state;
	device->current = (double)NAN;
	int r = cap_files_read(&package_of(device)->files, caps->env, device, ret_setting, reterr);
	if (r == 0)
		device->current = limit_of(device, ret_setting);
	return r;
}

// When the limit is lowered, bursts may not exceed the new limit; when it is raised, the burst limit is not reduced.
static int64_t plan_short_term(int64_t long_before_uw, int64_t short_before_uw, int64_t limit_uw)
{
	if (short_before_uw <= 0)
		return limit_uw;
	if (limit_uw < long_before_uw)
		return short_before_uw < limit_uw ? short_before_uw : limit_uw;
	return short_before_uw > limit_uw ? short_before_uw : limit_uw;
}

static void plan_zone(const struct package *package, const struct limits *limits, const struct cap_setting *before,
	int64_t limit_uw, struct cap_setting *ret_setting)
{
	const struct cap_files *files = &package->files;
	int64_t long_before_uw = cap_files_value(files, limits->long_term, before);
	cap_setting_add(ret_setting, files->files[limits->long_term].name, limit_uw);
	if (limits->short_term >= 0)
		cap_setting_add(ret_setting, files->files[limits->short_term].name,
			plan_short_term(long_before_uw, cap_files_value(files, limits->short_term, before), limit_uw));
	if (limits->enabled >= 0)
		cap_setting_add(ret_setting, files->files[limits->enabled].name, 1);
}

static void plan_package(const struct cap_device *device, const struct cap_setting *before, double value,
	struct cap_setting *ret_setting)
{
	const struct package *package = package_of(device);
	for (size_t i = 0; i < package->n_zones; i++)
		if (i == 0 || is_on(package, &package->zones[i], before)) // a disabled second register set stays disabled
			plan_zone(package, &package->zones[i], before, llround(value * 1e6), ret_setting);
}

static int write_package(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr)
{
	const struct powercap_caps *caps = device->state;
	return cap_files_write(&package_of(device)->files, caps->env, device, setting, reterr);
}

static const char *file_of(const struct cap_device *device, size_t i)
{
	const struct cap_files *files = &package_of(device)->files;
	return i < files->n ? files->files[i].path : NULL;
}

const struct cap_ops cap_powercap = {
	.open = open_powercap,
	.close = close_powercap,
	.read = read_package,
	.plan = plan_package,
	.write = write_package,
	.value_of = limit_of,
	.file = file_of,
	.scale = 1e-6,
	.not_limits = "enabled",
	.step = 125000, // registers have a resolution of 1/8 W; the kernel rounds down
};
