/* Power limits set through files of /sys: CPU packages, AMD and Intel GPUs. */
#include "cap/device.h"

#include "base/util.h"
#include "tree.h"

#include <errno.h>
#include <math.h>

enum { FILES_MAX = 24, CHANGES_MAX = 8 };

struct file {
	const char *path, *text;
};

#define RAPL "class/powercap/intel-rapl:0/"
#define MMIO "class/powercap/intel-rapl-mmio:0/"
#define CARD "class/drm/card0/device/"
#define HWMON CARD "hwmon/hwmon3/"
// clang-format off
#define AMD_CARD {CARD "vendor", "0x1002\n"}, {CARD "device", "0x744c\n"}, \
	{CARD "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n"}, {HWMON "name", "amdgpu\n"}
#define INTEL_CARD(driver) {CARD "vendor", "0x8086\n"}, {CARD "device", "0x56a0\n"}, \
	{CARD "uevent", "DRIVER=" driver "\nPCI_SLOT_NAME=0000:03:00.0\n"}, {HWMON "name", driver "\n"}
#define PACKAGE(folder, enabled, long_uw, short_uw) {folder "name", "package-0\n"}, {folder "enabled", enabled "\n"}, \
	{folder "constraint_0_name", "long_term\n"}, {folder "constraint_0_power_limit_uw", long_uw "\n"}, \
	{folder "constraint_1_name", "short_term\n"}, {folder "constraint_1_power_limit_uw", short_uw "\n"}
#define RATED(folder, uw) {folder "constraint_0_max_power_uw", uw "\n"}
#define LONG(folder, uw) {folder "constraint_0_power_limit_uw", uw "\n"}
#define SHORT(folder, uw) {folder "constraint_1_power_limit_uw", uw "\n"}
#define UNKNOWN (double)NAN

// A machine, the description of its device, a limit and the files after setting it; then the limit is restored.
static const struct row {
	const char *teaches;
	struct file files[FILES_MAX];
	double current, default_, min, max; // W
	bool min_is_stated;
	double limit;
	struct file then[CHANGES_MAX];
} rows[] = {
	{"package: the long-term and the short-term limit are set",
		{PACKAGE(RAPL, "1", "95000000", "120000000"), RATED(RAPL, "95000000")},
		.current = 95, .default_ = 95, .min = 9.5, .max = 95,
		.limit = 60, .then = {LONG(RAPL, "60000000"), SHORT(RAPL, "60000000"), {RAPL "enabled", "1\n"}}},
	{"package: a short-term limit below the new limit is unchanged",
		{PACKAGE(RAPL, "1", "95000000", "50000000"), RATED(RAPL, "95000000")},
		.current = 95, .default_ = 95, .min = 9.5, .max = 95,
		.limit = 60, .then = {LONG(RAPL, "60000000"), SHORT(RAPL, "50000000")}},
	{"package: a limit above the previous one leaves the short-term limit unchanged",
		{PACKAGE(RAPL, "1", "60000000", "120000000"), RATED(RAPL, "95000000")},
		.current = 60, .default_ = 95, .min = 9.5, .max = 95,
		.limit = 90, .then = {LONG(RAPL, "90000000"), SHORT(RAPL, "120000000")}},
	{"package: a disabled limit is enabled",
		{PACKAGE(RAPL, "0", "0", "0"), RATED(RAPL, "95000000")},
		.current = UNKNOWN, .default_ = 95, .min = 9.5, .max = 95,
		.limit = 60, .then = {LONG(RAPL, "60000000"), SHORT(RAPL, "60000000"), {RAPL "enabled", "1\n"}}},
	{"package with two register sets: the lower limit is in force, both are set",
		{PACKAGE(RAPL, "1", "200000000", "200000000"), PACKAGE(MMIO, "1", "45000000", "90000000"),
			RATED(RAPL, "45000000")},
		.current = 45, .default_ = 45, .min = 5, .max = 45,
		.limit = 30, .then = {LONG(RAPL, "30000000"), SHORT(RAPL, "30000000"),
			LONG(MMIO, "30000000"), SHORT(MMIO, "30000000")}},
	{"package with two register sets: a disabled second set stays disabled",
		{PACKAGE(RAPL, "1", "45000000", "90000000"), PACKAGE(MMIO, "0", "20000000", "20000000"),
			RATED(RAPL, "45000000")},
		.current = 45, .default_ = 45, .min = 5, .max = 45,
		.limit = 30, .then = {LONG(RAPL, "30000000"), LONG(MMIO, "20000000"), {MMIO "enabled", "0\n"}}},
	{"package without a rated power: the previous limit is the maximum",
		{PACKAGE(RAPL, "1", "65000000", "82000000")},
		.current = 65, .default_ = UNKNOWN, .min = 6.5, .max = 65,
		.limit = 40.5, .then = {LONG(RAPL, "40500000")}},
	{"package: constraints are found by name, not by number",
		{{RAPL "name", "package-0\n"}, {RAPL "constraint_0_name", "short_term\n"},
			{RAPL "constraint_1_name", "long_term\n"}, LONG(RAPL, "120000000"), SHORT(RAPL, "95000000"),
			{RAPL "constraint_1_max_power_uw", "95000000\n"}},
		.current = 95, .default_ = 95, .min = 9.5, .max = 95,
		.limit = 60, .then = {{RAPL "constraint_1_power_limit_uw", "60000000\n"},
			{RAPL "constraint_0_power_limit_uw", "60000000\n"}}},
	{"amdgpu: power1_cap within its stated range",
		{AMD_CARD, {HWMON "power1_cap", "303000000\n"}, {HWMON "power1_cap_default", "303000000\n"},
			{HWMON "power1_cap_min", "272000000\n"}, {HWMON "power1_cap_max", "348000000\n"}},
		.current = 303, .default_ = 303, .min = 272, .max = 348, .min_is_stated = true,
		.limit = 280, .then = {{HWMON "power1_cap", "280000000\n"}}},
	{"amdgpu on old kernels: minimum 0 and no default",
		{AMD_CARD, {HWMON "power1_cap", "220000000\n"}, {HWMON "power1_cap_min", "0\n"},
			{HWMON "power1_cap_max", "250000000\n"}},
		.current = 220, .default_ = UNKNOWN, .min = 22, .max = 250,
		.limit = 100, .then = {{HWMON "power1_cap", "100000000\n"}}},
	{"i915: 0 means no limit",
		{INTEL_CARD("i915"), {HWMON "power1_max", "0\n"}, {HWMON "power1_rated_max", "225000000\n"}},
		.current = UNKNOWN, .default_ = 225, .min = 22.5, .max = 225,
		.limit = 150, .then = {{HWMON "power1_max", "150000000\n"}}},
	{"xe: a short-term limit above the new limit is lowered too",
		{INTEL_CARD("xe"), {HWMON "power1_max", "190000000\n"}, {HWMON "power1_cap", "250000000\n"},
			{HWMON "power1_rated_max", "190000000\n"}},
		.current = 190, .default_ = 190, .min = 19, .max = 190,
		.limit = 120, .then = {{HWMON "power1_max", "120000000\n"}, {HWMON "power1_cap", "120000000\n"}}},
	{"xe on early kernels: only the package has a limit",
		{INTEL_CARD("xe"), {HWMON "power2_max", "120000000\n"}},
		.current = 120, .default_ = UNKNOWN, .min = 12, .max = 120,
		.limit = 80, .then = {{HWMON "power2_max", "80000000\n"}}},
};
// clang-format on

struct machine {
	struct tree tree;
	struct wattle_env env;
	struct cap_devices devices;
	struct wattle_error error;
};

static void open_machine(struct machine *machine, const struct file *files)
{
	*machine = (struct machine){0};
	tree_make(&machine->tree);
	for (size_t i = 0; i < FILES_MAX && files[i].path != NULL; i++)
		tree_write(&machine->tree, files[i].path, files[i].text);
	setenv("WATTLE_SYSFS", machine->tree.root, 1);
	setenv("WATTLE_PROCFS", machine->tree.root, 1);
	setenv("WATTLE_NVML", "/does/not/exist", 1);
	assert_int_equal(env_open(&machine->env, NULL), 0);
	assert_int_equal(cap_devices_open(&machine->devices, &machine->env, &machine->error), 0);
}

static void close_machine(struct machine *machine)
{
	cap_devices_close(&machine->devices);
	env_close(&machine->env);
	tree_finish(&machine->tree);
}

static void assert_holds(const struct machine *machine, const struct file *file)
{
	char path[512], text[64] = "";
	tree_path(&machine->tree, path, "%s", file->path);
	FILE *in = fopen(path, "re");
	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	if (strcmp(text, file->text) != 0)
		fail_msg("%s holds %s instead of %s", file->path, text, file->text);
}

static void assert_number(double found, double wanted)
{
	if (isnan(found) != isnan(wanted) || fabs(found - wanted) > 1e-9)
		fail_msg("%g instead of %g", found, wanted);
}

static struct cap_device *find(struct machine *machine, const char *name)
{
	struct cap_device *device = NULL;
	assert_int_equal(cap_devices_find(&machine->devices, name, CAP_POWER, &device, &machine->error), 0);
	return device;
}

static void limit_and_back(void **state)
{
	const struct row *row = *state;
	struct machine machine;
	open_machine(&machine, row->files);
	assert_int_equal(machine.devices.n, 1);
	struct cap_device *device = &machine.devices.devices[0];
	bool is_package = strcmp(device->name, "package-0") == 0;
	assert_string_equal(device->id, is_package ? "package-0" : "pci-0000:03:00.0");
	assert_number(device->current, row->current);
	assert_number(device->default_, row->default_);
	assert_number(device->min, row->min);
	assert_number(device->max, row->max);
	assert_int_equal(device->min_is_ours, !row->min_is_stated);
	assert_true(device->settable);

	struct cap_setting before, planned, now;
	assert_int_equal(cap_read(device, &before, &machine.error), 0);
	assert_number(cap_value_of(device, &before), row->current);
	assert_int_equal(cap_plan(device, &before, row->limit, &planned, &machine.error), 0);
	assert_number(cap_value_of(device, &planned), row->limit);
	assert_int_equal(cap_write(device, &planned, &machine.error), 0);
	for (size_t i = 0; i < CHANGES_MAX && row->then[i].path != NULL; i++)
		assert_holds(&machine, &row->then[i]);
	assert_int_equal(cap_read(device, &now, &machine.error), 0);
	assert_number(device->current, row->limit);

	assert_int_equal(cap_write(device, &before, &machine.error), 0);
	for (size_t i = 0; i < FILES_MAX && row->files[i].path != NULL; i++)
		assert_holds(&machine, &row->files[i]);
	close_machine(&machine);
}

static const struct {
	const char *teaches;
	double limit;
	int error;
} ranges[] = {
	{"the least", 9.5, 0},
	{"below it", 9.4, -ERANGE},
	{"previous limit above the rated power: may be set again", 110, 0},
	{"limit above the previous one: refused", 110.001, -ERANGE},
	{"limit of 0: refused", 0, -ERANGE},
	{"negative limit: refused", -5, -ERANGE},
	{"no number", UNKNOWN, -ERANGE},
	{"endless", (double)INFINITY, -ERANGE},
};

static void out_of_range(void **state)
{
	static const struct file files[FILES_MAX] = {PACKAGE(RAPL, "1", "110000000", "120000000"),
		RATED(RAPL, "95000000")};
	struct machine machine;
	open_machine(&machine, files);
	struct cap_device *device = find(&machine, "package-0");
	struct cap_setting before, planned;
	assert_int_equal(cap_read(device, &before, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (cap_plan(device, &before, ranges[i].limit, &planned, &machine.error) != ranges[i].error)
			fail_msg("%s", ranges[i].teaches);
	assert_int_equal(cap_plan(device, &before, 8, &planned, &machine.error), -ERANGE);
	assert_string_equal(machine.error.text,
		"package-0: 8 W is out of range; give 9.5 to 110 W (the minimum is wattle's own: this device "
		"reports none)");
	close_machine(&machine);
}

// Otherwise each limit would allow a lower one, and none would allow a higher one.
static void range_of_before(void **state)
{
	static const struct file files[FILES_MAX] = {PACKAGE(RAPL, "1", "200000000", "250000000")};
	struct machine machine;
	open_machine(&machine, files);
	struct cap_device *device = find(&machine, "package-0");
	struct cap_setting before, planned;
	assert_int_equal(cap_read(device, &before, NULL), 0);
	assert_int_equal(cap_plan(device, &before, 50, &planned, NULL), 0);
	assert_int_equal(cap_write(device, &planned, NULL), 0);
	cap_devices_close(&machine.devices);
	assert_int_equal(cap_devices_open(&machine.devices, &machine.env, NULL), 0);
	device = find(&machine, "package-0");
	assert_number(device->current, 50);
	assert_int_equal(cap_plan(device, &before, 200, &planned, NULL), 0);
	assert_int_equal(cap_plan(device, &before, 19, &planned, &machine.error), -ERANGE);
	assert_non_null(strstr(machine.error.text, "give 20 to 200 W"));
	close_machine(&machine);
}

// Whether a read-back value is the limit that was set, rounded, or another one.
static const struct {
	const char *teaches, *device, *field;
	int64_t asked, found;
	bool matches;
} roundings[] = {
	{"RAPL: rounded to eighths of a watt: the same limit", "package-0", "intel-rapl:0/constraint_0_power_limit_uw",
		60100000, 60000000, true},
	{"RAPL: a whole step away: another limit", "package-0", "intel-rapl:0/constraint_0_power_limit_uw", 60000000,
		59875000, false},
	{"a switch is on or off", "package-0", "intel-rapl:0/enabled", 1, 0, false},
	{"amdgpu: rounded to whole watts: the same limit", "gpu-0", "power1_cap", 280900000, 280000000, true},
	{"amdgpu: another watt: another limit", "gpu-0", "power1_cap", 280000000, 281000000, false},
};

static void rounding(void **state)
{
	static const struct file files[FILES_MAX] = {PACKAGE(RAPL, "1", "95000000", "120000000"), AMD_CARD,
		{HWMON "power1_cap", "303000000\n"}};
	struct machine machine;
	open_machine(&machine, files);
	for (size_t i = 0; i < ARRAY_SIZE(roundings); i++) {
		struct cap_device *device = find(&machine, roundings[i].device);
		assert_true(cap_reads_back(device));
		if (cap_field_matches(device, roundings[i].field, roundings[i].asked, roundings[i].found) !=
			roundings[i].matches)
			fail_msg("%s", roundings[i].teaches);
	}
	close_machine(&machine);
}

#define AMD_LIMITS                                                                                                     \
	{HWMON "power1_cap", "303000000\n"}, {HWMON "power1_cap_min", "100000000\n"},                                  \
	{                                                                                                              \
		HWMON "power1_cap_max", "350000000\n"                                                                  \
	}

// Previous limit in a journal, and the value that is restored.
static const struct {
	const char *teaches;
	struct file files[FILES_MAX];
	const char *field;
	int64_t written, put_back;
} bounds[] = {
	// clang-format off
	{"RAPL, 1 uW: the minimum is restored", {PACKAGE(RAPL, "1", "95000000", "95000000"), RATED(RAPL, "95000000")},
		"intel-rapl:0/constraint_0_power_limit_uw", 1, 9500000},
	{"RAPL, negative: the minimum is restored", {PACKAGE(RAPL, "1", "95000000", "95000000"), RATED(RAPL, "95000000")},
		"intel-rapl:0/constraint_1_power_limit_uw", -1, 9500000},
	{"RAPL, 4.5 W: below wattle's own minimum, but plausible: unchanged", {PACKAGE(RAPL, "1", "95000000", "95000000"),
		RATED(RAPL, "95000000")}, "intel-rapl:0/constraint_0_power_limit_uw", 4500000, 4500000},
	{"RAPL, 4095.875 W (firmware's \"no limit\"): unchanged", {PACKAGE(RAPL, "1", "95000000", "95000000"), RATED(RAPL, "95000000")},
		"intel-rapl:0/constraint_0_power_limit_uw", 4095875000, 4095875000},
	{"RAPL, 4096 W: would wrap around to 0: the register's maximum", {PACKAGE(RAPL, "1", "95000000", "95000000"),
		RATED(RAPL, "95000000")}, "intel-rapl:0/constraint_0_power_limit_uw", 4096000000, 4095875000},
	{"enabled 0: unchanged", {PACKAGE(RAPL, "1", "95000000", "95000000")}, "intel-rapl:0/enabled", 0, 0},
	{"enabled 7: becomes 1", {PACKAGE(RAPL, "1", "95000000", "95000000")}, "intel-rapl:0/enabled", 7, 1},
	{"amdgpu, below the stated range: its minimum", {AMD_CARD, AMD_LIMITS}, "power1_cap", 99000000, 100000000},
	{"amdgpu, above the stated range: its maximum", {AMD_CARD, AMD_LIMITS}, "power1_cap", 351000000, 350000000},
	{"amdgpu, within the stated range: unchanged", {AMD_CARD, AMD_LIMITS}, "power1_cap", 200000000, 200000000},
	{"Intel GPU, 0: means no limit: unchanged", {INTEL_CARD("i915"), {HWMON "power1_max", "120000000\n"}}, "power1_max", 0, 0},
	{"Intel GPU, 1 uW: the minimum is restored", {INTEL_CARD("i915"), {HWMON "power1_max", "120000000\n"}}, "power1_max", 1, 12000000},
	// clang-format on
};

static void out_of_a_file(void **state)
{
	size_t i = (size_t)(uintptr_t)*state;
	struct machine machine;
	open_machine(&machine, bounds[i].files);
	struct cap_setting setting = {.n = 1, .fields = {{.value = bounds[i].written}}};
	text_copy(setting.fields[0].name, sizeof(setting.fields[0].name), bounds[i].field);
	assert_int_equal(cap_setting_bound(&machine.devices.devices[0], &setting),
		bounds[i].written != bounds[i].put_back);
	assert_true(setting.fields[0].value == bounds[i].put_back);
	close_machine(&machine);
}

static void defaults(void **state)
{
	static const struct file files[FILES_MAX] = {PACKAGE(RAPL, "1", "95000000", "120000000"), AMD_CARD,
		{HWMON "power1_cap", "250000000\n"}, {HWMON "power1_cap_default", "303000000\n"},
		{HWMON "power1_cap_max", "348000000\n"}};
	struct machine machine;
	open_machine(&machine, files);
	struct cap_setting now, setting;
	struct cap_device *gpu = find(&machine, "gpu-0"), *package = find(&machine, "package-0");
	assert_int_equal(cap_read(gpu, &now, NULL), 0);
	assert_int_equal(cap_default_setting(gpu, &now, &setting, &machine.error), 0);
	assert_number(cap_value_of(gpu, &setting), 303);
	assert_int_equal(cap_read(package, &now, NULL), 0);
	assert_int_equal(cap_default_setting(package, &now, &setting, &machine.error), -ENODATA);
	assert_string_equal(machine.error.text, "package-0 does not report its default limit");
	close_machine(&machine);
}

static void gone(void **state)
{
	static const struct file files[FILES_MAX] = {AMD_CARD, {HWMON "power1_cap", "303000000\n"}};
	struct machine machine;
	open_machine(&machine, files);
	struct cap_device *device = find(&machine, "gpu-0");
	struct cap_setting before;
	assert_int_equal(cap_read(device, &before, NULL), 0);
	tree_remove(&machine.tree, HWMON "power1_cap");
	assert_int_equal(cap_write(device, &before, &machine.error), -ENODEV);
	assert_non_null(strstr(machine.error.text, "power1_cap no longer exists"));
	assert_int_equal(cap_read(device, &before, &machine.error), -ENODEV);
	assert_number(device->current, UNKNOWN);
	close_machine(&machine);
}

// Files of a suspended card are not read: here reading would fail.
static void asleep(void **state)
{
	static const struct file files[FILES_MAX] = {AMD_CARD, {CARD "power/runtime_status", "suspended\n"},
		{HWMON "power1_cap", "not read\n"}};
	struct machine machine;
	open_machine(&machine, files);
	assert_int_equal(machine.devices.n, 1);
	const struct cap_device *sleeper = &machine.devices.devices[0];
	assert_true(sleeper->asleep);
	assert_false(sleeper->settable);
	assert_number(sleeper->current, UNKNOWN);
	tree_write(&machine.tree, HWMON "power1_cap", "303000000\n");
	const struct cap_device *woken = find(&machine, "gpu-0");
	assert_false(woken->asleep);
	assert_true(woken->settable);
	assert_number(woken->current, 303);
	close_machine(&machine);
}

static void nothing(void **state)
{
	static const struct file files[FILES_MAX] = {{RAPL "name", "package-0\n"}, {RAPL "enabled", "0\n"}, AMD_CARD};
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, files);
	assert_int_equal(machine.devices.n, 0);
	assert_int_equal(cap_devices_find(&machine.devices, "gpu-0", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_non_null(
		strstr(machine.error.text, "gpu-0 (AMD GPU 1002:744c at 0000:03:00.0) has no settable power limit"));
	assert_null(strstr(machine.error.text, "CPU packages"));
	assert_int_equal(cap_devices_find(&machine.devices, "package-0", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_non_null(strstr(machine.error.text, "CPU packages: this CPU's driver has no power limits"));
	close_machine(&machine);
}

static void two_packages(void **state)
{
	static const struct file files[FILES_MAX] = {{RAPL "name", "package-1\n"},
		{RAPL "constraint_0_name", "long_term\n"}, {RAPL "constraint_0_power_limit_uw", "205000000\n"},
		{"class/powercap/intel-rapl:1/name", "package-0\n"},
		{"class/powercap/intel-rapl:1/constraint_0_name", "long_term\n"},
		{"class/powercap/intel-rapl:1/constraint_0_power_limit_uw", "165000000\n"}};
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, files);
	assert_int_equal(machine.devices.n, 2);
	assert_string_equal(machine.devices.devices[0].name, "package-0");
	assert_number(find(&machine, "package-0")->current, 165);
	assert_number(find(&machine, "package-1")->current, 205);
	assert_int_equal(cap_devices_find(&machine.devices, "package-2", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_string_equal(machine.error.text,
		"no device 'package-2' with a limit of power; valid are: package-0, package-1");
	close_machine(&machine);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, limit_and_back);
	ROWS_ADD_ONE(&tests, "range: an earlier limit outside the range may be restored", out_of_range);
	ROWS_ADD_ONE(&tests, "no range known: the previous limit is the maximum",
		range_of_before);
	ROWS_ADD_ONE(&tests, "register that reads slightly less than was written: limit is set", rounding);
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++)
		rows_add(&tests, bounds[i].teaches, out_of_a_file, (void *)(uintptr_t)i);
	ROWS_ADD_ONE(&tests, "default limit: reported where the device states it", defaults);
	ROWS_ADD_ONE(&tests, "card removed: error", gone);
	ROWS_ADD_ONE(&tests, "suspended card: only naming it wakes it", asleep);
	ROWS_ADD_ONE(&tests, "no limit can be set: the reason is reported", nothing);
	ROWS_ADD_ONE(&tests, "packages: ordered by name, each with its own registers", two_packages);
	return rows_run(&tests, "limits in files");
}
