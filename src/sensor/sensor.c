#include "sensor/sensor.h"

#include "base/search.h"
#include "base/util.h"
#include "sensor/gpu_gain.h"
#include "sensor/gpu_roster.h"
#include "sensor/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* The maximum is deliberately far above real power: it only has to distinguish the energy of a counter wrap (tens of joules)
 * from that of a restart (hundreds of kilojoules). */
static const struct {
	bool adds_up;
	double max_power_w;
} kinds[] = {
	[DOMAIN_PACKAGE] = {true, 2000},
	[DOMAIN_CORE] = {false, 2000},
	[DOMAIN_UNCORE] = {false, 1000},
	[DOMAIN_DRAM] = {true, 500},
	[DOMAIN_PSYS] = {false, 5000},
	[DOMAIN_GPU] = {true, 3000},
	[DOMAIN_NODE] = {false, 50000},
	[DOMAIN_MODULE] = {false, 5000},
	[DOMAIN_BATTERY] = {false, 500},
	[DOMAIN_WALL] = {false, 50000},
	[DOMAIN_GPU_MEMORY] = {false, 1000},
};
static_assert(ARRAY_SIZE(kinds) == DOMAIN_KINDS, "a row for every kind of domain");

const char *const domain_kind_names[DOMAIN_KINDS + 1] = {
	[DOMAIN_PACKAGE] = "package",
	[DOMAIN_CORE] = "core",
	[DOMAIN_UNCORE] = "uncore",
	[DOMAIN_DRAM] = "dram",
	[DOMAIN_PSYS] = "psys",
	[DOMAIN_GPU] = "gpu",
	[DOMAIN_NODE] = "node",
	[DOMAIN_MODULE] = "module",
	[DOMAIN_BATTERY] = "battery",
	[DOMAIN_WALL] = "wall",
	[DOMAIN_GPU_MEMORY] = "gpu-memory",
};

const char *const provenance_names[PROVENANCE_KINDS + 1] = {
	[PROVENANCE_MEASURED] = "measured",
	[PROVENANCE_DERIVED] = "derived",
	[PROVENANCE_ESTIMATED] = "estimated",
};

static int place_of(const char *const *names, const char *name)
{
	for (int i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

const char *domain_kind_name(enum domain_kind kind)
{
	return kind < DOMAIN_KINDS ? domain_kind_names[kind] : "unknown"; // stored by a later wattle version
}

int domain_kind_from_name(const char *name)
{
	return place_of(domain_kind_names, name);
}

bool domain_kind_adds_up(enum domain_kind kind)
{
	return kind < DOMAIN_KINDS && kinds[kind].adds_up;
}

bool domain_adds_up(struct domain_location location, domain_find *find, const void *domains)
{
	enum { NESTED_MAX = 16 }; // limit against cyclic `inside` names
	bool adds_up = domain_kind_adds_up(location.kind);
	for (int depth = 0; adds_up && depth < NESTED_MAX && find(domains, location.inside, &location); depth++)
		adds_up = !domain_kind_adds_up(location.kind);
	return adds_up;
}

double domain_kind_max_power_w(enum domain_kind kind)
{
	return kind < DOMAIN_KINDS ? kinds[kind].max_power_w : 0;
}

const char *provenance_name(enum provenance provenance)
{
	return provenance_names[provenance];
}

int provenance_from_name(const char *name)
{
	return place_of(provenance_names, name);
}

bool sensor_context_has_pid(const struct sensor_context *context, pid_t pid)
{
	size_t at = search_first(context->target_pids, context->n_target_pids, sizeof(pid), &pid, search_before_pid);
	return at < context->n_target_pids && context->target_pids[at] == pid;
}

// "package-0" and "package-0-die-1" are one socket, in whole and in part.
static bool is_die_of(const struct domain *die, const struct domain *whole)
{
	size_t length = strlen(whole->name);
	return strncmp(die->name, whole->name, length) == 0 && strncmp(die->name + length, "-die-", 5) == 0;
}

/* Whether `than` is superfluous beside d, which is used already. A modelled package is superfluous beside any package that is
 * actually read: the sum of measured and estimated sockets would be neither. */
static bool makes_superfluous(const struct domain *d, const struct domain *than, bool same_sensor)
{
	if (strcmp(d->name, than->name) == 0)
		return true;
	if (same_sensor || d->kind != than->kind)
		return false;
	bool is_model = than->kind == DOMAIN_PACKAGE && than->provenance == PROVENANCE_ESTIMATED;
	return (is_model && d->provenance != PROVENANCE_ESTIMATED) || than->unmatched || is_die_of(d, than) ||
		is_die_of(than, d);
}

// Returns the earlier domain, of any open sensor, that makes this one superfluous, and its sensor. A domain of the same name
// is preferred to another socket.
static const struct domain *find_better(const struct sensor_set *set, const struct domain *than,
	const char **ret_sensor)
{
	const struct domain *better = NULL;
	for (size_t s = 0; s < set->n_slots; s++) {
		const struct sensor_slot *slot = &set->slots[s];
		for (size_t i = 0; i < slot->n_domains; i++) {
			const struct domain *d = &slot->domains[i];
			bool is_namesake = strcmp(d->name, than->name) == 0;
			if (d == than)
				return better;
			if (!d->used || !makes_superfluous(d, than, s + 1 == set->n_slots))
				continue;
			if (better != NULL && !is_namesake)
				continue;
			*ret_sensor = slot->ops->name;
			better = d;
			if (is_namesake)
				return d;
		}
	}
	return better;
}

// On entry `used` means that the sensor offers the domain; afterwards it means that the domain is sampled.
static void finish_slot(struct sensor_set *set, struct sensor_slot *slot)
{
	for (size_t i = 0; i < slot->n_domains; i++) {
		struct domain *d = &slot->domains[i];
		if (!(d->max_power_w > 0))
			d->max_power_w = domain_kind_max_power_w(d->kind);
		d->used = d->used && d->readable;
		const char *sensor;
		const struct domain *better = d->used ? find_better(set, d, &sensor) : NULL;
		if (better == NULL)
			continue;
		d->used = false;
		snprintf(d->why, sizeof(d->why), "%s already measures %s", sensor, better->name);
	}
}

static int open_slot(struct sensor_set *set, const struct sensor_ops *ops, const struct wattle_env *env,
	const struct sensor_options *options, struct wattle_error *reterr)
{
	struct sensor_slot *slot = &set->slots[set->n_slots];
	*slot = (struct sensor_slot){.ops = ops, .state = calloc_array(1, ops->state_size)};
	if (slot->state == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for sensor %s", ops->name);
	set->n_slots++; // from here on sensor_set_close releases it
	int r = ops->open(slot->state, env, options, reterr);
	if (r < 0)
		return r;
	slot->domains = ops->domains(slot->state, &slot->n_domains);
	set->n_rows += slot->n_domains;
	finish_slot(set, slot);
	return 0;
}

static int list_devices(struct sensor_set *set, struct wattle_error *reterr)
{
	set->devices = calloc_array(set->n_rows, sizeof(set->devices[0]));
	set->sources = calloc_array(set->n_rows, sizeof(set->sources[0]));
	set->rows = calloc_array(set->n_rows, sizeof(set->rows[0]));
	set->calibrations = calloc_array(set->n_rows, sizeof(set->calibrations[0]));
	if (set->devices == NULL || set->sources == NULL || set->rows == NULL || set->calibrations == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for %zu domains", set->n_rows);
	for (size_t s = 0; s < set->n_slots; s++)
		for (size_t i = 0; i < set->slots[s].n_domains; i++) {
			struct domain *domain = &set->slots[s].domains[i];
			if (!domain->used)
				continue;
			domain->calibration = &set->calibrations[set->n_devices];
			set->devices[set->n_devices] = domain;
			set->sources[set->n_devices++] = set->slots[s].ops->name;
		}
	return 0;
}

int sensor_set_open(struct sensor_set *set, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	*set = (struct sensor_set){0};
	struct gpu_roster roster;
	struct sensor_options with_roster = *options;
	with_roster.roster = &roster;
	int r = gpu_roster_open(&roster, options->gpus, reterr);
	for (size_t i = 0; r == 0 && sensor_registry[i] != NULL; i++) {
		assert(set->n_slots < ARRAY_SIZE(set->slots));
		r = open_slot(set, sensor_registry[i], env, &with_roster, reterr);
	}
	if (r == 0)
		r = gpu_roster_check(&roster, reterr);
	gpu_roster_close(&roster);
	if (r == 0)
		r = list_devices(set, reterr);
	if (r == 0)
		r = gpu_gain_apply(set, env, options->gpu_gains, set->gain_message, sizeof(set->gain_message), reterr);
	if (r < 0)
		sensor_set_close(set);
	else
		set->temperature = cpu_temperature_open(env);
	return r;
}

void sensor_set_close(struct sensor_set *set)
{
	while (set->n_slots > 0) {
		struct sensor_slot *slot = &set->slots[--set->n_slots];
		slot->ops->close(slot->state);
		free(slot->state);
	}
	cpu_temperature_close(set->temperature);
	free(set->devices);
	free(set->sources);
	free(set->calibrations);
	free(set->rows);
	*set = (struct sensor_set){0};
}

static bool has_counter(const struct sensor_slot *slot)
{
	for (size_t i = 0; i < slot->n_domains; i++)
		if (slot->domains[i].used && slot->domains[i].has_energy)
			return true;
	return false;
}

static bool is_wanted(const struct sensor_slot *slot, const struct sensor_context *context)
{
	if (slot->n_domains == 0)
		return false;
	return context->energy_only ? !slot->rests_between && has_counter(slot) : !slot->rests;
}

// A package's temperature comes from a driver other than its energy.
static void fill_temperature(struct sensor_set *set, const struct domain *domain, int64_t row[DEVICE_COUNT])
{
	if (set->temperature != NULL && domain->kind == DOMAIN_PACKAGE && !value_ok(row[DEVICE_TEMPERATURE]))
		row[DEVICE_TEMPERATURE] = cpu_temperature_read(set->temperature, domain->index);
}

const struct domain *sensor_set_find(const struct sensor_set *set, const char *name)
{
	for (size_t i = 0; name[0] != '\0' && i < set->n_devices; i++)
		if (strcmp(set->devices[i]->name, name) == 0)
			return set->devices[i];
	return NULL;
}

static bool find_location(const void *set, const char *name, struct domain_location *ret_location)
{
	const struct domain *domain = sensor_set_find(set, name);
	if (domain != NULL)
		*ret_location = (struct domain_location){domain->kind, domain->inside};
	return domain != NULL;
}

bool sensor_set_adds_up(const struct sensor_set *set, const struct domain *domain)
{
	return domain_adds_up((struct domain_location){domain->kind, domain->inside}, find_location, set);
}

void sensor_set_read(struct sensor_set *set, const struct sensor_context *context, int64_t (*ret_rows)[DEVICE_COUNT])
{
	int64_t(*rows)[DEVICE_COUNT] = set->rows;
	size_t device = 0;
	for (size_t i = 0; i < set->n_rows; i++)
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			rows[i][m] = VALUE_MISSING;
	for (size_t s = 0; s < set->n_slots; s++) {
		const struct sensor_slot *slot = &set->slots[s];
		if (is_wanted(slot, context))
			slot->ops->read(slot->state, context, rows);
		for (size_t i = 0; i < slot->n_domains; i++) {
			if (!slot->domains[i].used)
				continue;
			if (!context->energy_only && !slot->rests)
				fill_temperature(set, &slot->domains[i], rows[i]);
			memcpy(ret_rows[device++], rows[i], sizeof(rows[i]));
		}
		rows += slot->n_domains;
	}
}

const struct device_user *sensor_set_users(const struct sensor_set *set, size_t device, size_t *ret_count)
{
	for (size_t s = 0; s < set->n_slots; s++) {
		const struct sensor_slot *slot = &set->slots[s];
		for (size_t i = 0; i < slot->n_domains; i++)
			if (&slot->domains[i] == set->devices[device])
				return slot->ops->users != NULL ? slot->ops->users(slot->state, i, ret_count) : NULL;
	}
	return NULL;
}
