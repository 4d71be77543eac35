/* GPUs that are suspended, woken, lost from the bus and found again; processes seen only in accounting data;
 * frequency of driver calls. */
#include "sensor/sensor.h"

#include "nvml_fixture.h"
#include "tree.h"

#define MISSING VALUE_MISSING

/* ---- suspend ---- */

struct laptop {
	struct nvml_fixture f;
	struct tree sys;
};

static void put_gpu(struct laptop *l, const char *address, const char *status)
{
	char path[128];
	snprintf(path, sizeof(path), "bus/pci/devices/%s/vendor", address);
	tree_write(&l->sys, path, "0x10de\n");
	snprintf(path, sizeof(path), "bus/pci/devices/%s/class", address);
	tree_write(&l->sys, path, "0x030200\n");
	snprintf(path, sizeof(path), "bus/pci/devices/%s/power/runtime_status", address);
	tree_write(&l->sys, path, status);
}

static void laptop_init(struct laptop *l, const char *cards)
{
	fixture_init(&l->f, MODERN, cards);
	tree_make(&l->sys);
	l->f.env.sysfs_fd = open(l->sys.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(l->f.env.sysfs_fd >= 0);
	put_gpu(l, "0000:01:00.0", "suspended\n");
	// The board's sound device is awake, its GPU is not.
	tree_write(&l->sys, "bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
	tree_write(&l->sys, "bus/pci/devices/0000:01:00.1/class", "0x040300\n");
	tree_write(&l->sys, "bus/pci/devices/0000:01:00.1/power/runtime_status", "active\n");
}

static void laptop_close(struct laptop *l)
{
	int fd = l->f.env.sysfs_fd;
	fixture_close(&l->f);
	close(fd);
	tree_finish(&l->sys);
}

static void not_woken_to_be_described(void **state)
{
	struct laptop l;
	laptop_init(&l, "gpu\n");
	l.f.options.describe_only = true;
	assert_int_equal(fixture_try_open(&l.f), 0);
	assert_int_equal(l.f.n, 1);
	assert_string_equal(l.f.domains[0].name, "gpu-0");
	assert_string_equal(l.f.domains[0].device, "NVIDIA GPU 0000:01:00.0");
	assert_string_equal(l.f.domains[0].why, "suspended (runtime power management): not read, to avoid waking it");
	assert_false(l.f.domains[0].readable || l.f.domains[0].used);
	fixture_read(&l.f, 0);
	assert_int_equal(l.f.calls(NULL), 0);
	laptop_close(&l);
}

static void read_once_it_wakes(void **state)
{
	struct laptop l;
	laptop_init(&l, "gpu\npower_mw constant 30000\n");
	assert_int_equal(fixture_try_open(&l.f), 0);
	assert_true(l.f.domains[0].used && !l.f.domains[0].has_energy);
	assert_string_equal(l.f.domains[0].note, "suspended (runtime power management): not read, to avoid waking it");
	for (int64_t t_ms = 0; t_ms < 500; t_ms += 100)
		fixture_read(&l.f, t_ms);
	assert_int_equal(l.f.calls(NULL), 0);
	assert_true(l.f.rows[0][DEVICE_POWER] == MISSING);
	put_gpu(&l, "0000:01:00.0", "active\n");
	fixture_read(&l.f, 600);
	assert_int_equal(l.f.rows[0][DEVICE_POWER], 30000);
	assert_string_equal(l.f.domains[0].note, "no longer suspended");
	laptop_close(&l);
}

// Without the library: whether a driver would help depends on /sys.
static const struct hint_row {
	const char *teaches;
	const char *path, *text; // of a file in /sys
	size_t n;                // rows
} hint_rows[] = {
	{"hint: nothing in /sys, so there may be a GPU", "class/powercap/name", "", 1},
	{"hint: PCI list with an NVIDIA GPU", "bus/pci/devices/0000:01:00.0/vendor", "0x10de\n", 1},
	{"hint: PCI list without one", "bus/pci/devices/0000:01:00.0/vendor", "0x8086\n", 0},
	{"hint: no PCI list, a card of another vendor", "class/drm/card0/device/vendor", "0x1002\n", 0},
	{"hint: no PCI list, an NVIDIA card", "class/drm/card0/device/vendor", "0x10de\n", 1},
};

static void check_hint(void **state)
{
	const struct hint_row *row = *state;
	struct laptop l;
	fixture_init(&l.f, MODERN, "gpu\n");
	tree_make(&l.sys);
	l.f.env.sysfs_fd = open(l.sys.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	l.f.env.nvml = "/nonexistent/libnvidia-ml.so.1";
	l.f.options.describe_only = true;
	tree_write(&l.sys, row->path, row->text);
	if (strncmp(row->path, "bus/", 4) == 0)
		tree_write(&l.sys, "bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	assert_int_equal(fixture_try_open(&l.f), 0);
	assert_int_equal(l.f.n, row->n);
	laptop_close(&l);
}

// With NVML open for the other GPU, the suspended one is not touched.
static void one_of_two_sleeps(void **state)
{
	struct laptop l;
	laptop_init(&l, "gpu\npci 00000000:01:00.0\ngpu\npci 00000000:02:00.0\npower_mw constant 5000\n");
	put_gpu(&l, "0000:02:00.0", "active\n");
	assert_int_equal(fixture_try_open(&l.f), 0);
	assert_true(l.f.domains[0].has_energy && l.f.domains[1].has_energy);
	fixture_read(&l.f, 0);
	assert_true(l.f.rows[0][DEVICE_POWER] == MISSING);
	assert_int_equal(l.f.rows[1][DEVICE_POWER], 5000);
	assert_string_equal(l.f.domains[0].note, "suspended (runtime power management): not read, to avoid waking it");
	put_gpu(&l, "0000:01:00.0", "active\n");
	put_gpu(&l, "0000:02:00.0", "suspended\n");
	fixture_read(&l.f, 100);
	assert_int_equal(l.f.rows[0][DEVICE_POWER], 100000);
	assert_true(l.f.rows[1][DEVICE_POWER] == MISSING);
	laptop_close(&l);
}

// A tree without an NVIDIA GPU, or with one that cannot suspend.
static void awake_unless_the_kernel_says_so(void **state)
{
	static const char *const statuses[] = {"active\n", "unsupported\n", "", "nonsense\n"};
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct laptop l;
		laptop_init(&l, "gpu\n");
		put_gpu(&l, "0000:01:00.0", statuses[i]);
		assert_int_equal(fixture_try_open(&l.f), 0);
		fixture_read(&l.f, 0);
		assert_int_equal(l.f.rows[0][DEVICE_POWER], 100000);
		laptop_close(&l);
	}
}

/* ---- the bus ---- */

static void comes_back(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nlost_after_ms 1000 2500\ntemperature_c 60\n");
	fixture_read(&f, 900);
	fixture_read(&f, 1100);
	assert_non_null(strstr(f.domains[0].note, "fell off the bus"));
	fixture_read(&f, 2150); // queried again a second later, and still lost
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] == MISSING && f.rows[0][DEVICE_TEMPERATURE] == MISSING);
	unsigned long before = f.calls(NULL);
	fixture_read(&f, 2600);
	assert_int_equal(f.calls(NULL), before);
	fixture_read(&f, 3200);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 320000000);
	assert_int_equal(f.rows[0][DEVICE_TEMPERATURE], 60);
	assert_string_equal(f.domains[0].note, "fell off the bus and came back");
	fixture_close(&f);
}

/* ---- accounting ---- */

#define BRIEF "process 200 C 50 7000 1030 1080\n"

// 200 had its memory for 50 ms between two readings.
static const struct account_row {
	const char *teaches, *cards;
	int64_t from_ms, max_bytes;
} account_rows[] = {
	{"accounting: process that ran between two readings", "accounting\n" BRIEF, 0, 7000},
	{"accounting off: unknown", BRIEF, 0, 0},
	{"accounting: earlier process with the same pid", "accounting\n" BRIEF, 5000, 0},
	{"accounting: process outside the target", "accounting\nprocess 7 C 50 7000 1030 1080\n", 0, 0},
	{"accounting: memory unknown", "accounting\nprocess 200 C 50 unknown 1030 1080\n", 0, 0},
	{"accounting: less memory than the lists reported", "accounting\nprocess 100 C 0 9000\n" BRIEF, 0, 9000},
};

static void check_account(void **state)
{
	const struct account_row *row = *state;
	struct nvml_fixture f;
	char cards[256];
	int64_t max_bytes = 0, n_told = 0;
	snprintf(cards, sizeof(cards), "gpu\n%s", row->cards);
	fixture_init(&f, MODERN, cards);
	f.t_ns = row->from_ms * NS_PER_MS;
	f.freeze(f.t_ns);
	assert_int_equal(fixture_try_open(&f), 0);
	for (int64_t t_ms = row->from_ms; t_ms < row->from_ms + 3000; t_ms += 100) {
		fixture_read(&f, t_ms);
		int64_t bytes = f.rows[0][DEVICE_TARGET_MEMORY];
		max_bytes = bytes > max_bytes ? bytes : max_bytes;
		n_told += bytes == 7000;
	}
	assert_int_equal(max_bytes, row->max_bytes);
	assert_true(n_told <= 1); // once: it is a peak, not a state
	fixture_close(&f);
}

/* ---- frequency of calls ---- */

// A thousand ticks in a second: energy and power each time, the rest ten times.
static void fast_ticks_are_cheap(void **state)
{
	static const struct {
		const char *function;
		unsigned long least, most;
	} expected[] = {
		{"nvmlDeviceGetTotalEnergyConsumption", 1000, 1002},
		{"nvmlDeviceGetTemperature", 10, 12},
		{"nvmlDeviceGetComputeRunningProcesses_v2", 10, 12},
		{"nvmlDeviceGetProcessUtilization", 10, 14},
		{"nvmlDeviceGetMemoryInfo_v2", 10, 14},
		{"nvmlDeviceGetEnforcedPowerLimit", 1, 3},
	};
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\ntemperature_c 60\nprocess 100 C 40 1\n");
	for (int64_t t_ms = 0; t_ms < 1000; t_ms++) {
		fixture_read(&f, t_ms);
		assert_true(value_ok(f.rows[0][DEVICE_POWER]));
		assert_int_equal(f.rows[0][DEVICE_TEMPERATURE], 60); // kept value
	}
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		unsigned long calls = f.calls(expected[i].function);
		if (calls < expected[i].least || calls > expected[i].most)
			fail_msg("%s: %lu calls", expected[i].function, calls);
	}
	fixture_close(&f);
}

// Values kept for 100 ms do not outlive the target.
static void nothing_is_held_past_the_end(void **state)
{
	struct nvml_fixture f;
	const struct sensor_context ended = {.main_pid = 100};
	fixture_open(&f, MODERN, "gpu\nprocess 100 C 40 1000 0 500\n");
	fixture_read(&f, 490);
	assert_int_equal(f.rows[0][DEVICE_TARGET_MEMORY], 1000);
	fixture_read_as(&f, 505, ended);
	assert_int_equal(f.rows[0][DEVICE_TARGET_MEMORY], 0);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "suspended GPU: described without waking it", not_woken_to_be_described);
	ROWS_ADD_ONE(&tests, "suspended GPU: read once it wakes", read_once_it_wakes);
	ROWS_ADD(&tests, hint_rows, check_hint);
	ROWS_ADD_ONE(&tests, "two GPUs, one suspended: that one is not touched", one_of_two_sleeps);
	ROWS_ADD_ONE(&tests, "GPU is awake unless the kernel reports otherwise", awake_unless_the_kernel_says_so);
	ROWS_ADD_ONE(&tests, "GPU lost from the bus: may return", comes_back);
	ROWS_ADD(&tests, account_rows, check_account);
	ROWS_ADD_ONE(&tests, "a thousand ticks a second: slow calls are made ten times", fast_ticks_are_cheap);
	ROWS_ADD_ONE(&tests, "kept values end with the target", nothing_is_held_past_the_end);
	return rows_run(&tests, "nvml_life");
}
