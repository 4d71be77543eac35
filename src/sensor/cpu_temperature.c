#include "sensor/internal.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "sensor/sysfs.h"

#include <stdio.h>
#include <strings.h>

/* Sources of the package temperature, best first. The first source that yields an input is used. */

enum { PROBES_MAX = 32, INPUTS_MAX = 32 };

// Each read interrupts a CPU of the package, and temperatures change slowly.
static const int64_t PERIOD_NS = 100 * NS_PER_MS;
static const int64_t PLAUSIBLE_MIN_MC = -50000, PLAUSIBLE_MAX_MC = 150000;

struct probe {
	int package;
	struct file_kept input; // m°C
};

struct package_value {
	int64_t t_ns; // VALUE_MISSING: never read
	int64_t temperature_c;
};

struct cpu_temperature {
	const struct wattle_env *env; // borrowed
	struct probe probes[PROBES_MAX];
	struct package_value values[PROBES_MAX + 1]; // by package; the last entry is for inputs without a package
	size_t n;
	int n_packages;
};

static void add_probe(struct cpu_temperature *temperature, int package, const char *path)
{
	if (temperature->n == PROBES_MAX || package < 0)
		return;
	struct probe *probe = &temperature->probes[temperature->n];
	probe->package = package;
	if (file_kept_open(&probe->input, temperature->env->sysfs_fd, path) == 0)
		temperature->n++;
}

// Returns the number of the first temperature whose label starts with `label`, 0 if there is none; *ret_rest is the rest of
// the label.
static int find_label(int root_fd, const struct hwmon_chip *chip, const char *label, char *ret_rest, size_t size)
{
	for (int i = 1; i <= INPUTS_MAX; i++) {
		char attribute[24], text[64];
		snprintf(attribute, sizeof(attribute), "temp%d_label", i);
		if (!hwmon_attribute_read(root_fd, chip, attribute, text, sizeof(text)) ||
			strncmp(text, label, strlen(label)) != 0)
			continue;
		text_copy(ret_rest, size, text + strlen(label));
		return i;
	}
	return 0;
}

static void add_input(struct cpu_temperature *temperature, int package, const struct hwmon_chip *chip, int number)
{
	char attribute[24], path[HWMON_PATH_SIZE];
	snprintf(attribute, sizeof(attribute), "temp%d_input", number);
	if (hwmon_attribute_path(temperature->env->sysfs_fd, chip, attribute, path))
		add_probe(temperature, package, path);
}

// coretemp: one chip per package, which lists the package sensor among those of the cores.
static void find_coretemp(struct cpu_temperature *temperature, const struct hwmon_chips *chips)
{
	for (size_t i = 0; i < chips->n; i++) {
		char rest[16];
		uint64_t package;
		const struct hwmon_chip *chip = &chips->chips[i];
		if (strcmp(chip->name, "coretemp") != 0)
			continue;
		int number = find_label(temperature->env->sysfs_fd, chip, "Package id ", rest, sizeof(rest));
		if (number > 0 && num_parse_u64(rest, &package) == 0 && package < PROBES_MAX)
			add_input(temperature, (int)package, chip, number);
	}
}

/* AMD: one chip per node of the data fabric (several per socket on early EPYCs), in the order of their PCI devices. Tctl is
 * the value for fan control, on some models 10 to 27 K above the die. Tdie is the die temperature. */
static void find_amd(struct cpu_temperature *temperature, const struct hwmon_chips *chips, const char *name)
{
	size_t n = 0, at = 0;
	for (size_t i = 0; i < chips->n; i++)
		n += strcmp(chips->chips[i].name, name) == 0;
	size_t packages = (size_t)temperature->n_packages;
	size_t per_package = n > packages ? n / packages : 1;
	for (size_t i = 0; i < chips->n; i++) {
		char rest[16];
		const struct hwmon_chip *chip = &chips->chips[i];
		if (strcmp(chip->name, name) != 0)
			continue;
		int number = find_label(temperature->env->sysfs_fd, chip, "Tdie", rest, sizeof(rest));
		if (number == 0)
			number = find_label(temperature->env->sysfs_fd, chip, "Tctl", rest, sizeof(rest));
		// Drivers before Linux 5.6 have no labels; their temp1 is Tctl.
		add_input(temperature, (int)(at++ / per_package), chip, number > 0 ? number : 1);
	}
}

static void find_k10temp(struct cpu_temperature *temperature, const struct hwmon_chips *chips)
{
	find_amd(temperature, chips, "k10temp");
}

static void find_zenpower(struct cpu_temperature *temperature, const struct hwmon_chips *chips)
{
	find_amd(temperature, chips, "zenpower");
}

// ARM servers whose power drivers report the temperature of the whole chip first.
static void find_soc(struct cpu_temperature *temperature, const struct hwmon_chips *chips)
{
	static const char *const names[] = {"apm_xgene", "xgene", "smpro_hwmon", "smpro"};
	int package = 0;
	for (size_t i = 0; i < chips->n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (strcmp(chips->chips[i].name, names[k]) == 0)
				add_input(temperature, package++, &chips->chips[i], 1);
}

/* x86_pkg_temp is the package sensor, one zone per package, in order. ARM boards name their zones freely; the names of CPU
 * zones contain "cpu" ("cpu-thermal", "CPU-therm", "cpu0_thermal"). acpitz measures a place on the board. */
static void find_zones(struct cpu_temperature *temperature, const struct hwmon_chips *chips)
{
	int root_fd = temperature->env->sysfs_fd, package = 0;
	struct folder zones;
	folder_list(root_fd, "class/thermal", "thermal_zone", &zones);
	for (size_t i = 0; i < zones.n; i++) {
		char path[128], type[48];
		snprintf(path, sizeof(path), "class/thermal/%s/type", zones.names[i]);
		if (file_read_line_in(root_fd, path, type, sizeof(type)) <= 0)
			continue;
		snprintf(path, sizeof(path), "class/thermal/%s/temp", zones.names[i]);
		if (strcmp(type, "x86_pkg_temp") == 0)
			add_probe(temperature, package++, path);
		else if (strncasecmp(type, "cpu", 3) == 0)
			add_probe(temperature, 0, path);
	}
	folder_finish(&zones);
}

struct cpu_temperature *cpu_temperature_open(const struct wattle_env *env)
{
	static void (*const ways[])(struct cpu_temperature *, const struct hwmon_chips *) = {find_coretemp,
		find_k10temp, find_zenpower, find_soc, find_zones};
	struct cpu_temperature *temperature = calloc_array(1, sizeof(*temperature));
	if (temperature == NULL)
		return NULL;
	temperature->env = env;
	temperature->n_packages = cpu_count_packages(env);
	for (size_t i = 0; i < ARRAY_SIZE(temperature->values); i++)
		temperature->values[i].t_ns = VALUE_MISSING;
	struct hwmon_chips chips;
	hwmon_chips_find(env->sysfs_fd, &chips);
	for (size_t i = 0; i < ARRAY_SIZE(ways) && temperature->n == 0; i++)
		ways[i](temperature, &chips);
	hwmon_chips_finish(&chips);
	if (temperature->n > 0)
		return temperature;
	free(temperature);
	return NULL;
}

void cpu_temperature_close(struct cpu_temperature *temperature)
{
	for (size_t i = 0; temperature != NULL && i < temperature->n; i++)
		file_kept_close(&temperature->probes[i].input);
	free(temperature);
}

static int64_t read_probe_mc(struct probe *probe)
{
	int64_t value;
	if (file_kept_read_i64(&probe->input, &value) < 0)
		return VALUE_MISSING;
	return value > PLAUSIBLE_MIN_MC && value < PLAUSIBLE_MAX_MC ? value : VALUE_MISSING;
}

// Returns the hottest probe of package `index`; -1: of all packages.
static int64_t read_package_c(struct cpu_temperature *temperature, int index)
{
	int64_t hottest_mc = VALUE_MISSING;
	for (size_t i = 0; i < temperature->n; i++) {
		struct probe *probe = &temperature->probes[i];
		if (index >= 0 && probe->package != index)
			continue;
		int64_t value_mc = read_probe_mc(probe);
		hottest_mc = value_mc > hottest_mc ? value_mc : hottest_mc; // VALUE_MISSING is less than any reading
	}
	return value_ok(hottest_mc) ? llround((double)hottest_mc / 1000) : VALUE_MISSING;
}

int64_t cpu_temperature_read(struct cpu_temperature *temperature, int index)
{
	if (index >= PROBES_MAX)
		return VALUE_MISSING;
	struct package_value *value = &temperature->values[index >= 0 ? index : PROBES_MAX];
	int64_t now_ns = env_now_ns(temperature->env);
	if (value_ok(value->t_ns) && now_ns - value->t_ns < PERIOD_NS && now_ns >= value->t_ns)
		return value->temperature_c;
	value->t_ns = now_ns;
	value->temperature_c = read_package_c(temperature, index);
	return value->temperature_c;
}
