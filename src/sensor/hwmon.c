#include "sensor/internal.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* Power and energy of CPUs and boards from the drivers of /sys/class/hwmon. The hwmon chips of GPUs belong to the GPU
 * sensors. */

int hwmon_find(const struct hwmon *hwmon, const char *name)
{
	for (size_t i = 0; i < hwmon->n; i++)
		if (strcmp(hwmon->domains[i].name, name) == 0)
			return (int)i;
	return -1;
}

static bool make_room(struct hwmon *hwmon)
{
	if (hwmon->n < hwmon->capacity)
		return true;
	size_t capacity = hwmon->capacity > 0 ? hwmon->capacity * 2 : 8;
	struct domain *domains = realloc_array(hwmon->domains, capacity, sizeof(*domains));
	if (domains != NULL)
		hwmon->domains = domains;
	struct hwmon_meter *meters = realloc_array(hwmon->meters, capacity, sizeof(*meters));
	if (meters != NULL)
		hwmon->meters = meters;
	if (domains == NULL || meters == NULL)
		return false;
	hwmon->capacity = capacity;
	return true;
}

int hwmon_add(struct hwmon *hwmon, enum domain_kind kind, const char *name, const char *device)
{
	if (!make_room(hwmon)) {
		hwmon->no_memory = true;
		return -1;
	}
	struct domain *d = &hwmon->domains[hwmon->n];
	*d = (struct domain){.kind = kind, .index = -1, .provenance = PROVENANCE_DERIVED};
	hwmon->meters[hwmon->n] = (struct hwmon_meter){.counter = -1};
	text_copy(d->name, sizeof(d->name), name);
	text_copy(d->device, sizeof(d->device), device);
	return (int)hwmon->n++;
}

// A missing attribute is retried at each reading, at its expected path.
static void find_path(const struct hwmon *hwmon, const struct hwmon_chip *chip, const char *attribute,
	char ret_path[HWMON_PATH_SIZE])
{
	if (!hwmon_attribute_path(hwmon->env->sysfs_fd, chip, attribute, ret_path))
		snprintf(ret_path, HWMON_PATH_SIZE, "%s/%s", chip->path, attribute);
}

static void keep(struct hwmon *hwmon, const struct hwmon_chip *chip, const char *attribute, struct file_kept *kept)
{
	char path[HWMON_PATH_SIZE];
	find_path(hwmon, chip, attribute, path);
	file_kept_open(kept, hwmon->env->sysfs_fd, path);
}

void hwmon_add_counter(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute)
{
	char path[HWMON_PATH_SIZE], name[PROTO_NAME_SIZE];
	if (at < 0)
		return;
	find_path(hwmon, chip, attribute, path);
	snprintf(name, sizeof(name), "%s/%.30s", chip->name, attribute);
	int counter = privileged_add(&hwmon->counters, path, name);
	hwmon->no_memory |= counter < 0;
	hwmon->meters[at].counter = counter;
	hwmon->domains[at].has_energy = counter >= 0;
}

void hwmon_add_term(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute,
	const char *factor, double unit)
{
	if (at < 0 || hwmon->meters[at].n_terms == HWMON_TERMS_MAX)
		return;
	struct hwmon_term *term = &hwmon->meters[at].terms[hwmon->meters[at].n_terms++];
	term->unit = unit;
	term->has_factor = factor != NULL;
	keep(hwmon, chip, attribute, &term->value);
	if (term->has_factor)
		keep(hwmon, chip, factor, &term->factor);
}

static int read_term_mw(struct hwmon_term *term, double *ret_mw, struct file_kept **ret_failed)
{
	int64_t value, factor = 1;
	*ret_failed = &term->value;
	int r = file_kept_read_i64(&term->value, &value);
	if (r == 0 && term->has_factor) {
		*ret_failed = &term->factor;
		r = file_kept_read_i64(&term->factor, &factor);
	}
	if (r == 0)
		*ret_mw = (double)value * (double)factor * term->unit;
	return r;
}

/* Reads all terms or fails: a sum with a missing term would be silently wrong. A reverse current reads as negative for a
 * moment. */
static int read_power_mw(struct hwmon_meter *meter, const struct domain *d, double *ret_mw,
	struct file_kept **ret_failed)
{
	double sum_mw = 0;
	for (size_t i = 0; i < meter->n_terms; i++) {
		double term_mw = 0;
		int r = read_term_mw(&meter->terms[i], &term_mw, ret_failed);
		if (r < 0)
			return r;
		sum_mw += term_mw;
	}
	// ACPI firmware reports 0xffffffff mW for an unknown value.
	if (meter->n_terms == 0 || sum_mw < 0 || sum_mw > domain_kind_max_power_w(d->kind) * 1e3)
		return -ENODATA;
	*ret_mw = sum_mw;
	return 0;
}

static void try_counter(struct hwmon *hwmon, int at)
{
	uint64_t energy_uj;
	int64_t t_ns;
	int counter = hwmon->meters[at].counter;
	int r = privileged_read(&hwmon->counters, (size_t)counter, &energy_uj, &t_ns);
	privileged_describe(&hwmon->counters, (size_t)counter, r, &hwmon->domains[at]);
}

void hwmon_try(struct hwmon *hwmon, int at)
{
	if (at < 0)
		return;
	struct domain *d = &hwmon->domains[at];
	struct hwmon_meter *meter = &hwmon->meters[at];
	struct file_kept *failed = &meter->terms[0].value;
	double power_mw;
	int r = -EAGAIN;
	if (d->has_energy) {
		try_counter(hwmon, at);
		return;
	}
	// Firmware may be busy with the previous query, so one retry is made.
	for (int i = 0; i < 2 && r < 0; i++)
		r = read_power_mw(meter, d, &power_mw, &failed);
	d->readable = d->used = r == 0;
	if (r < 0)
		domain_set_unreadable(d, hwmon->env, failed->path, r);
}

/* ---- the sensor ---- */

static void close_sensor(void *state)
{
	struct hwmon *hwmon = state;
	for (size_t i = 0; i < hwmon->n; i++)
		for (size_t k = 0; k < hwmon->meters[i].n_terms; k++) {
			struct hwmon_term *term = &hwmon->meters[i].terms[k];
			file_kept_close(&term->value);
			if (term->has_factor)
				file_kept_close(&term->factor);
		}
	privileged_close(&hwmon->counters);
	free(hwmon->domains);
	free(hwmon->meters);
	*hwmon = (struct hwmon){0};
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	static void (*const families[])(struct hwmon *, const struct hwmon_chips *) = {hwmon_add_amd_energy,
		hwmon_add_acpi, hwmon_add_ina3221, hwmon_add_arm};
	struct hwmon *hwmon = state;
	struct hwmon_chips chips;
	hwmon->env = env;
	privileged_init(&hwmon->counters, env);
	int r = hwmon_chips_find(env->sysfs_fd, &chips);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
		families[i](hwmon, &chips);
	hwmon_chips_finish(&chips);
	return r < 0 || hwmon->no_memory
		? error_set(reterr, -ENOMEM, "out of memory for the chips of %s/class/hwmon", env->sysfs)
		: 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct hwmon *hwmon = state;
	*ret_count = hwmon->n;
	return hwmon->domains;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct hwmon *hwmon = state;
	struct file_kept *failed;
	bool any_counter = false;
	for (size_t i = 0; i < hwmon->n; i++)
		any_counter |= hwmon->domains[i].used && hwmon->domains[i].has_energy;
	if (any_counter)
		privileged_refresh(&hwmon->counters);
	for (size_t i = 0; i < hwmon->n; i++) {
		struct domain *d = &hwmon->domains[i];
		double power_mw;
		if (!d->used)
			continue;
		if (d->has_energy) {
			privileged_fill(&hwmon->counters, (size_t)hwmon->meters[i].counter, rows[i]);
			privileged_note(&hwmon->counters, (size_t)hwmon->meters[i].counter, d);
		} else if (!context->energy_only && read_power_mw(&hwmon->meters[i], d, &power_mw, &failed) == 0) {
			rows[i][DEVICE_POWER] = llround(power_mw);
		}
	}
}

const struct sensor_ops sensor_hwmon = {
	.name = "hwmon",
	.state_size = sizeof(struct hwmon),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
