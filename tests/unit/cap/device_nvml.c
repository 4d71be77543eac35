/* Power limits and locked clocks of NVIDIA GPUs, with the fake library. */
#include "cap/device.h"

#include "sensor/sensor.h"
#include "tree.h"

#include "../sensor/nvml_fixture.h"

#include <errno.h>
#include <math.h>

struct machine {
	struct nvml_fixture fake;
	struct tree tree; // of /sys, where the test has one
	struct cap_devices devices;
	struct wattle_error error;
};

static void open_machine(struct machine *machine, const char *library, const char *cards)
{
	*machine = (struct machine){0};
	fixture_init(&machine->fake, library, cards);
	assert_int_equal(cap_devices_open(&machine->devices, &machine->fake.env, &machine->error), 0);
}

static void close_machine(struct machine *machine)
{
	char clocks[128];
	cap_devices_close(&machine->devices);
	snprintf(clocks, sizeof(clocks), "%s/cards.clocks", machine->fake.folder);
	unlink(clocks);
	fixture_close(&machine->fake);
}

static struct cap_device *find(struct machine *machine, const char *name, enum cap_kind what)
{
	struct cap_device *device = NULL;
	assert_int_equal(cap_devices_find(&machine->devices, name, what, &device, &machine->error), 0);
	return device;
}

static void assert_number(double found, double wanted)
{
	if (isnan(found) != isnan(wanted) || fabs(found - wanted) > 1e-9)
		fail_msg("%g instead of %g", found, wanted);
}

// Reads the state, plans a change and writes it.
static int set(struct cap_device *device, double value, struct wattle_error *reterr)
{
	struct cap_setting before, planned;
	int r = cap_read(device, &before, reterr);
	if (r == 0)
		r = cap_plan(device, &before, value, &planned, reterr);
	return r == 0 ? cap_write(device, &planned, reterr) : r;
}

static unsigned long calls_of_set(const struct machine *machine)
{
	return machine->fake.calls("nvmlDeviceSetPowerManagementLimit") +
		machine->fake.calls("nvmlDeviceSetPowerManagementLimit_v2") +
		machine->fake.calls("nvmlDeviceSetGpuLockedClocks") +
		machine->fake.calls("nvmlDeviceResetGpuLockedClocks");
}

/* ---- discovery ---- */

#define UUID "uuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6\n"

static const struct row {
	const char *teaches, *library, *cards;
	const char *label, *id;
	double current, default_, min, max, enforced;
	bool min_is_ours;
	const char *hint; // expected prefix
} rows[] = {
	{"all values of the driver, in W", MODERN,
		"gpu\nname NVIDIA H100\n" UUID "limits_mw 200000 700000 700000 650500\n", "NVIDIA H100",
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 650.5, 700, 200, 700, 650.5, false, ""},
	{"another limiter is lower: the enforced limit", MODERN,
		"gpu\n" UUID "limits_mw 100000 400000 400000 400000\nenforced_mw 250000\n", "Fake GPU",
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 400, 400, 100, 400, 250, false, ""},
	{"no persistence mode: warns that the limit is lost", MODERN, "gpu\n" UUID "persistence_off\n", "Fake GPU",
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 400, 400, 100, 400, 400, false, "persistence mode is off"},
	{"no UUID: identified by PCI address", MODERN, "gpu\npci 00000000:43:00.0\nerror nvmlDeviceGetUUID 3\n",
		"Fake GPU", "pci-0000:43:00.0", 400, 400, 100, 400, 400, false, ""},
	{"no UUID and no PCI address: identified by index", MODERN,
		"gpu\nerror nvmlDeviceGetUUID 3\nerror nvmlDeviceGetPciInfo 3\n", "Fake GPU", "nvml-0", 400, 400, 100,
		400, 400, false, ""},
	{"UUID with unsafe characters: made safe as a file name in the journal", MODERN, "gpu\nuuid ../GPU-a/b\n",
		"Fake GPU", "_._GPU-a_b", 400, 400, 100, 400, 400, false, ""},
	{"no default limit: none reported", MODERN, "gpu\n" UUID "error nvmlDeviceGetPowerManagementDefaultLimit 3\n",
		"Fake GPU", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 400, (double)NAN, 100, 400, 400, false, ""},
	{"no range: a tenth of the default is the minimum", MODERN,
		"gpu\n" UUID "error nvmlDeviceGetPowerManagementLimitConstraints 3\n", "Fake GPU",
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 400, 400, 40, 400, 400, true, ""},
	{"old driver without an enforced limit", OLD, "gpu\n" UUID, "Fake GPU",
		"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", 400, 400, 100, 400, (double)NAN, false, ""},
};

static void describe(void **state)
{
	const struct row *row = *state;
	struct machine machine;
	open_machine(&machine, row->library, row->cards);
	const struct cap_device *device = find(&machine, "gpu-0", CAP_POWER);
	assert_string_equal(device->label, row->label);
	assert_string_equal(device->id, row->id);
	assert_number(device->current, row->current);
	assert_number(device->default_, row->default_);
	assert_number(device->min, row->min);
	assert_number(device->max, row->max);
	assert_number(device->enforced, row->enforced);
	assert_int_equal(device->min_is_ours, row->min_is_ours);
	assert_int_equal(strncmp(device->hint, row->hint, strlen(row->hint)), 0);
	assert_int_equal(device->hint[0] != '\0', row->hint[0] != '\0');
	assert_int_equal(device->settable, geteuid() == 0);
	assert_int_equal(calls_of_set(&machine), 0);
	close_machine(&machine);
}

// It keeps its number: the next GPU is gpu-2.
static void numbers(void **state)
{
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, MODERN,
		"gpu\nuuid GPU-aa\ngpu\nuuid GPU-ab\nerror nvmlDeviceGetPowerManagementLimit 3\n"
		"gpu\nuuid GPU-bb\ngpu\nerror nvmlDeviceGetHandleByIndex 4\ngpu\nlimits_mw 0 0 0 0\n");
	assert_string_equal(find(&machine, "gpu-2", CAP_POWER)->id, "GPU-bb");
	assert_string_equal(find(&machine, "GPU-b", CAP_POWER)->id, "GPU-bb");
	assert_string_equal(find(&machine, "gpu-aa", CAP_POWER)->name, "gpu-0");
	assert_int_equal(cap_devices_find(&machine.devices, "gpu-1", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_int_equal(
		strncmp(machine.error.text,
			"no device 'gpu-1' with a limit of power; valid are: gpu-0, gpu-2; gpu-1 (Fake GPU) has no "
			"settable power limit",
			108),
		0);
	assert_int_equal(cap_devices_find(&machine.devices, "GPU-", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_non_null(strstr(machine.devices.absent, "gpu-1 (Fake GPU) has no settable power limit"));
	assert_non_null(strstr(machine.devices.absent, "gpu-3: no permission to use this GPU"));
	assert_non_null(strstr(machine.devices.absent, "gpu-4 (Fake GPU) has no settable power limit"));
	close_machine(&machine);
}

static void ambiguous(void **state)
{
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, MODERN, "gpu\nuuid GPU-aa1\ngpu\nuuid GPU-aa2\n");
	assert_int_equal(cap_devices_find(&machine.devices, "GPU-aa", CAP_POWER, &device, &machine.error), -ENODEV);
	close_machine(&machine);
}

static void same_uuid(void **state)
{
	struct machine machine;
	open_machine(&machine, MODERN, "gpu\nuuid GPU-aa\ngpu\nuuid GPU-aa\n");
	assert_string_equal(find(&machine, "gpu-0", CAP_POWER)->id, "GPU-aa");
	assert_string_equal(find(&machine, "gpu-1", CAP_POWER)->id, "gpu-1");
	assert_string_equal(find(&machine, "gpu-1", CAP_CLOCKS)->id, "gpu-1");
	assert_string_equal(find(&machine, "GPU-aa", CAP_POWER)->name, "gpu-0");
	close_machine(&machine);
}

/* ---- setting ---- */

static const struct {
	const char *teaches, *cards;
	double watts;
	int error;
	const char *text; // part of the message
	double then;
	unsigned long sets;
} settings[] = {
	{"whole milliwatts", "gpu\n", 250.1234, 0, "", 250.123, 1},
	{"the least", "gpu\n", 100, 0, "", 100, 1},
	{"limit that is already set: not written again", "gpu\n", 400, 0, "", 400, 0},
	{"limit below the range: refused", "gpu\n", 99.9, -ERANGE, "gpu-0: 99.9 W is out of range; give 100 to 400 W",
		400, 0},
	{"above it", "gpu\n", 401, -ERANGE, "100 to 400 W", 400, 0},
	{"board that accepts whole watts only", "gpu\nlimit_step_mw 1000\n", 250.5, 0, "", 250, 1},
	{"board that accepts few limits only", "gpu\nlimit_step_mw 5000\n", 252.5, 0, "", 250, 1},
	{"driver refuses permission: error", "gpu\nerror nvmlDeviceSetPowerManagementLimit 4\n", 250, -EACCES,
		"gpu-0: can't set its power limit: the NVIDIA driver ", 400, 1},
	{"driver refuses a limit within its range: its range is reported",
		"gpu\nerror nvmlDeviceSetPowerManagementLimit 2\n", 250, -ERANGE, "rejects that value", 400, 1},
	{"the GPU fell off the bus", "gpu\nerror nvmlDeviceGetPowerManagementLimit 15 1\n", 250, -ENODEV,
		"the GPU fell off the bus", 400, 0},
	{"function not supported by this board: error", "gpu\nerror nvmlDeviceSetPowerManagementLimit 3\n", 250,
		-EOPNOTSUPP, "does not support this", 400, 1},
};

static void set_power(void **state)
{
	size_t i = (size_t)(uintptr_t)*state;
	struct machine machine;
	open_machine(&machine, MODERN, settings[i].cards);
	struct cap_device *device = find(&machine, "gpu-0", CAP_POWER);
	machine.fake.freeze(2 * NS_PER_MS);
	int r = set(device, settings[i].watts, &machine.error);
	assert_int_equal(r, settings[i].error);
	assert_non_null(strstr(machine.error.text, settings[i].text));
	assert_int_equal(calls_of_set(&machine), settings[i].sets);
	struct cap_setting now;
	if (cap_read(device, &now, NULL) == 0)
		assert_number(device->current, settings[i].then);
	close_machine(&machine);
}

static void rounding(void **state)
{
	struct machine machine;
	open_machine(&machine, MODERN, "gpu\n");
	const struct cap_device *device = find(&machine, "gpu-0", CAP_POWER);
	assert_true(cap_reads_back(device));
	assert_true(cap_field_matches(device, "limit_mw", 254500, 250000));
	assert_false(cap_field_matches(device, "limit_mw", 255000, 250000));
	struct cap_setting journal = {.n = 1, .fields = {{"limit_mw", 1}}};
	assert_true(cap_setting_bound(device, &journal) && journal.fields[0].value == 100000);
	journal.fields[0].value = INT64_MAX;
	assert_true(cap_setting_bound(device, &journal) && journal.fields[0].value == 400000);
	assert_false(cap_setting_bound(device, &journal));
	close_machine(&machine);
}

static void defaults(void **state)
{
	struct machine machine;
	open_machine(&machine, MODERN, "gpu\nlimits_mw 100000 400000 350000 300000\n");
	struct cap_device *device = find(&machine, "gpu-0", CAP_POWER);
	struct cap_setting now, setting;
	assert_int_equal(cap_read(device, &now, NULL), 0);
	assert_int_equal(cap_default_setting(device, &now, &setting, NULL), 0);
	assert_number(cap_value_of(device, &setting), 350);
	close_machine(&machine);
}

/* ---- clocks ---- */

static void clocks(void **state)
{
	struct machine machine;
	open_machine(&machine, MODERN, "gpu\nmax_sm_clock_mhz 1980\nclocks_mhz 345 15\n");
	struct cap_device *device = find(&machine, "gpu-0", CAP_CLOCKS);
	assert_string_equal(device->id, find(&machine, "gpu-0", CAP_POWER)->id);
	assert_number(device->min, 345);
	assert_number(device->max, 1980);
	assert_number(device->default_, 1980);
	assert_number(device->current, (double)NAN);
	assert_false(cap_reads_back(device));
	assert_int_equal(calls_of_set(&machine), 0);

	struct cap_setting before, planned;
	assert_int_equal(cap_read(device, &before, NULL), 0);
	assert_number(cap_value_of(device, &before), (double)NAN); // no locked clocks
	assert_int_equal(cap_plan(device, &before, 300, &planned, &machine.error), -ERANGE);
	assert_string_equal(machine.error.text, "gpu-0: 300 MHz is out of range; give 345 to 1980 MHz");
	assert_int_equal(cap_plan(device, &before, 1200, &planned, NULL), 0);
	assert_number(cap_value_of(device, &planned), 1200);
	assert_false(cap_setting_bound(device, &planned) || cap_setting_bound(device, &before));
	planned.fields[0].value = 1;
	assert_true(cap_setting_bound(device, &planned) && planned.fields[0].value == 345);
	planned.fields[0].value = 1200;
	assert_int_equal(cap_write(device, &planned, NULL), 0);
	assert_int_equal(machine.fake.calls("nvmlDeviceSetGpuLockedClocks"), 1);
	assert_int_equal(cap_write(device, &before, NULL), 0);
	assert_int_equal(machine.fake.calls("nvmlDeviceResetGpuLockedClocks"), 1);
	assert_int_equal(machine.fake.calls("nvmlDeviceSetPowerManagementLimit"), 0);
	close_machine(&machine);
}

static void no_clocks(void **state)
{
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, MODERN, "gpu\nerror nvmlDeviceGetSupportedMemoryClocks 3\n");
	find(&machine, "gpu-0", CAP_POWER);
	assert_int_equal(cap_devices_find(&machine.devices, "gpu-0", CAP_CLOCKS, &device, &machine.error), -ENODEV);
	assert_non_null(strstr(machine.error.text, "this machine has no device with a settable limit of clocks"));
	close_machine(&machine);
}

/* ---- suspended ---- */

static void put_to_sleep(struct machine *machine)
{
	static const char device[] = "bus/pci/devices/0000:01:00.0/";
	static const struct {
		const char *file, *text;
	} files[] = {{"vendor", "0x10de\n"}, {"class", "0x030200\n"}, {"power/runtime_status", "suspended\n"}};
	tree_make(&machine->tree);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s%s", device, files[i].file);
		tree_write(&machine->tree, path, files[i].text);
	}
	machine->fake.env.sysfs_fd = open(machine->tree.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void asleep(void **state)
{
	struct machine machine = {0};
	fixture_init(&machine.fake, MODERN, "gpu\npci 00000000:01:00.0\n" UUID);
	put_to_sleep(&machine);
	assert_int_equal(cap_devices_open(&machine.devices, &machine.fake.env, NULL), 0);
	assert_int_equal(machine.fake.calls("nvmlInit_v2"), 0);
	assert_int_equal(machine.devices.n, 2);
	const struct cap_device *sleeper = &machine.devices.devices[0];
	assert_string_equal(sleeper->name, "gpu-0");
	assert_string_equal(sleeper->why, "suspended (runtime power management): not read, to avoid waking it");
	assert_number(sleeper->current, (double)NAN);
	struct cap_device *other;
	assert_int_equal(cap_devices_find(&machine.devices, "package-0", CAP_POWER, &other, NULL), -ENODEV);
	assert_int_equal(machine.fake.calls("nvmlInit_v2"), 0);

	const struct cap_device *woken = find(&machine, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", CAP_POWER);
	assert_int_equal(machine.fake.calls("nvmlInit_v2"), 1);
	assert_ptr_equal(woken, sleeper);
	assert_number(woken->current, 400);
	assert_int_equal(woken->settable, geteuid() == 0);
	assert_number(find(&machine, "gpu-0", CAP_CLOCKS)->max, 1410);
	assert_int_equal(machine.fake.calls("nvmlInit_v2"), 1);
	close(machine.fake.env.sysfs_fd);
	tree_finish(&machine.tree);
	close_machine(&machine);
}

static void driver_not_loaded(void **state)
{
	struct machine machine;
	struct cap_device *device;
	open_machine(&machine, MODERN, "error nvmlInit 9\ngpu\n");
	assert_int_equal(machine.devices.n, 0);
	assert_int_equal(cap_devices_find(&machine.devices, "gpu-0", CAP_POWER, &device, &machine.error), -ENODEV);
	assert_non_null(strstr(machine.error.text, "NVIDIA: the NVIDIA driver is not loaded; sudo modprobe nvidia"));
	close_machine(&machine);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, describe);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		rows_add(&tests, settings[i].teaches, set_power, (const void *)(uintptr_t)i);
	ROWS_ADD_ONE(&tests, "GPUs have NVML's indexes, those without limits too; a UUID may be abbreviated", numbers);
	ROWS_ADD_ONE(&tests, "abbreviation of two UUIDs: ambiguous", ambiguous);
	ROWS_ADD_ONE(&tests, "one UUID for two GPUs: the journal keeps them apart", same_uuid);
	ROWS_ADD_ONE(&tests, "limit that reads back slightly lower: accepted", rounding);
	ROWS_ADD_ONE(&tests, "default limit and current limit are different values", defaults);
	ROWS_ADD_ONE(&tests, "clocks: an upper bound is locked and unlocked again", clocks);
	ROWS_ADD_ONE(&tests, "GPU whose clocks cannot be locked: error", no_clocks);
	ROWS_ADD_ONE(&tests, "suspended GPU: only its name or UUID wakes it", asleep);
	ROWS_ADD_ONE(&tests, "driver not loaded: no GPUs", driver_not_loaded);
	return rows_run(&tests, "limits of NVIDIA's GPUs");
}
