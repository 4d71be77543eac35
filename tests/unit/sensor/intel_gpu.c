#include "sensor/sensor.h"

#include "base/util.h"
#include "rows.h"
#include "sensor/gpu_roster.h"
#include "tree.h"

#include <fcntl.h>

#define CARD "class/drm/card1/device/"
#define ARC "DRIVER=i915\nPCI_SLOT_NAME=0000:03:00.0\n"
#define BATTLEMAGE "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\n"

struct file {
	const char *path, *text;
};

static const struct row {
	const char *teaches;
	struct file files[12];
	const char *expected; // a line for each domain: name readable used has_energy index device (why)
	int64_t energy_uj, cap_mw, temperature_c; // of the first
} rows[] = {
	{"i915: hwmon of the card, not of its tiles",
		{{CARD "uevent", ARC}, {CARD "hwmon/hwmon3/name", "i915_gt0\n"},
			{CARD "hwmon/hwmon3/energy1_input", "111\n"}, {CARD "hwmon/hwmon4/name", "i915\n"},
			{CARD "hwmon/hwmon4/energy1_input", "5000000\n"},
			{CARD "hwmon/hwmon4/power1_max", "190000000\n"},
			{CARD "hwmon/hwmon4/power1_rated_max", "225000000\n"}},
		"gpu-0 yes yes yes 0 Intel GPU 8086:56a0 at 0000:03:00.0\n", 5000000, 190000, VALUE_MISSING},
	{"i915: a limit of 0 is disabled",
		{{CARD "uevent", ARC}, {CARD "hwmon/hwmon4/name", "i915\n"}, {CARD "hwmon/hwmon4/energy1_input", "5\n"},
			{CARD "hwmon/hwmon4/power1_max", "0\n"}},
		"gpu-0 yes yes yes 0 Intel GPU 8086:56a0 at 0000:03:00.0\n", 5, VALUE_MISSING, VALUE_MISSING},
	{"xe: the card, and the package as a part of it",
		{{CARD "uevent", BATTLEMAGE}, {CARD "hwmon/hwmon2/name", "xe\n"},
			{CARD "hwmon/hwmon2/energy1_input", "7000000\n"},
			{CARD "hwmon/hwmon2/energy2_input", "4000000\n"}, {CARD "hwmon/hwmon2/temp2_input", "48000\n"}},
		"gpu-0 yes yes yes 0 Intel GPU 8086:56a0 at 0000:03:00.0\n"
		"gpu-0 yes no no -1 Intel GPU package 8086:56a0 at 0000:03:00.0 (energy2_input is part of energy1_input)\n",
		7000000, VALUE_MISSING, 48},
	{"xe: the package if the card has no meter",
		{{CARD "uevent", BATTLEMAGE}, {CARD "hwmon/hwmon2/name", "xe\n"},
			{CARD "hwmon/hwmon2/energy2_input", "4000000\n"}},
		"gpu-0 yes yes yes 0 Intel GPU package 8086:56a0 at 0000:03:00.0\n", 4000000, VALUE_MISSING,
		VALUE_MISSING},
	{"discrete GPU under an old kernel", {{CARD "uevent", ARC}},
		"gpu-0 no no no 0 Intel GPU 8086:56a0 at 0000:03:00.0 (its driver has no energy counter)\n",
		VALUE_MISSING, VALUE_MISSING, VALUE_MISSING},
	{"integrated GPU", {{CARD "uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n"}},
		"uncore-0 no no no -1 Intel integrated GPU 8086:56a0 at 0000:00:02.0 (part of the CPU: RAPL measures it, as uncore-0)\n",
		VALUE_MISSING, VALUE_MISSING, VALUE_MISSING},
	{"counter that is no number",
		{{CARD "uevent", ARC}, {CARD "hwmon/hwmon4/name", "i915\n"},
			{CARD "hwmon/hwmon4/energy1_input", "N/A\n"}},
		"gpu-0 no no no 0 Intel GPU 8086:56a0 at 0000:03:00.0 (energy1_input contains no number, or "
		"the kernel can't read it)\n",
		VALUE_MISSING, VALUE_MISSING, VALUE_MISSING},
	{"suspended: listed, not read",
		{{CARD "uevent", ARC}, {CARD "power/runtime_status", "suspended\n"},
			{CARD "hwmon/hwmon4/name", "i915\n"}, {CARD "hwmon/hwmon4/energy1_input", "5\n"}},
		"gpu-0 yes yes yes 0 Intel GPU 8086:56a0 at 0000:03:00.0\n", VALUE_MISSING, VALUE_MISSING,
		VALUE_MISSING},
	{"passed through to a virtual machine", {{CARD "uevent", "DRIVER=vfio-pci\nPCI_SLOT_NAME=0000:03:00.0\n"}}, "",
		VALUE_MISSING, VALUE_MISSING, VALUE_MISSING},
};

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void print(const struct domain *d, char *out, size_t size)
{
	size_t at = strlen(out);
	snprintf(out + at, size - at, "%s %s %s %s %d %s%s%s%s\n", d->name, yes_no(d->readable), yes_no(d->used),
		yes_no(d->has_energy), d->index, d->device, d->why[0] != '\0' ? " (" : "", d->why,
		d->why[0] != '\0' ? ")" : "");
}

static void check(void **state)
{
	const struct row *row = *state;
	struct tree tree;
	tree_make(&tree);
	tree_write(&tree, CARD "vendor", "0x8086\n");
	tree_write(&tree, CARD "device", "0x56a0\n");
	for (size_t i = 0; i < ARRAY_SIZE(row->files) && row->files[i].path != NULL; i++)
		tree_write(&tree, row->files[i].path, row->files[i].text);
	struct wattle_env env = {.sysfs_fd = open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .procfs_fd = -1};
	struct gpu_roster roster;
	assert_int_equal(gpu_roster_open(&roster, NULL, NULL), 0);
	const struct sensor_options options = {.roster = &roster};
	void *sensor = calloc(1, sensor_intel_gpu.state_size);
	assert_int_equal(sensor_intel_gpu.open(sensor, &env, &options, NULL), 0);

	size_t n;
	char seen[1024] = "";
	const struct domain *domains = sensor_intel_gpu.domains(sensor, &n);
	for (size_t i = 0; i < n; i++)
		print(&domains[i], seen, sizeof(seen));
	assert_string_equal(seen, row->expected);

	int64_t values[2][DEVICE_COUNT];
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		values[0][m] = values[1][m] = VALUE_MISSING;
	sensor_intel_gpu.read(sensor, &(struct sensor_context){.t_ns = NS_PER_S}, values);
	assert_int_equal(values[0][DEVICE_ENERGY_RAW], row->energy_uj);
	assert_int_equal(values[0][DEVICE_POWER_CAP], row->cap_mw);
	assert_int_equal(values[0][DEVICE_TEMPERATURE], row->temperature_c);

	sensor_intel_gpu.close(sensor);
	free(sensor);
	gpu_roster_close(&roster);
	close(env.sysfs_fd);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "intel_gpu");
}
