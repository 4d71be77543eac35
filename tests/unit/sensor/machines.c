#include "sensor/sensor.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"
#include "rows.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// tests/machines/NAME/{sys,proc} and, in `expected`, the expected domains.
static const struct row {
	const char *teaches, *machine;
} rows[] = {
	{"desktop: core, uncore, dram get their package's number, psys is a zone of its own, the MMIO twin is left out",
		"desktop-intel"},
	{"two sockets, registered in reverse: names count, not indices; dtpm has no energy", "xeon-2s"},
	{"two dies with counters of their own: both count", "xeon-dies"},
	{"platform domain for each socket, in steps of whole joules", "xeon-psys"},
	{"AMD: package and core, through the driver named intel-rapl", "epyc"},
	{"AMD on an older kernel: four dies repeat one counter, one is used", "epyc-dies"},
	{"virtual machine without zones: the model is used", "vm"},
	{"one unreadable zone: its memory and the other socket stay readable", "one-unreadable"},
	{"no readable zone: the model is used, and the zone is listed", "none-readable"},
	{"laptop: two batteries are one domain; empty bay, mouse and board temperature are skipped", "laptop-battery"},
	{"two Graces: the meters contain each other as their labels state", "grace"},
	{"four ACPI meters: one unreadable, one of a battery, one of the machine, one listed", "acpi-meter"},
	{"Jetson Orin: the total rail contains the others", "jetson-orin"},
	{"AGX Xavier: separate rails are added; SOC and CV are one domain", "jetson-xavier"},
	{"Cray EX: the node contains its parts", "cray-ex"},
	{"amd_energy: four reported sockets are two, and contain the cores", "amd-energy-server"},
	{"perf: the counters of one package, without powercap", "perf-only"},
	{"Ampere Altra: three regulators feed the package", "ampere-altra"},
	{"container: links into an empty folder are no zones; the model is used, and a message names the mount",
		"container"},
	{"AMD desktop: the card's counter is a measurement; the integrated GPU is part of the package", "amd-desktop"},
	{"four MI300X: no edge temperature, one counter missing", "mi300-server"},
	{"Intel Arc with xe: the card is used, not its package; RAPL covers the integrated GPU", "intel-arc"},
	{"Intel Arc with i915: the device's hwmon, not its tile's", "intel-arc-i915"},
	{"laptop with a suspended AMD card: listed, not read", "laptop-hybrid"},
};

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void print_value(struct buf *out, int64_t value, const char *unit)
{
	if (value_ok(value))
		buf_printf(out, " %lld %s", (long long)value, unit);
}

// Values of one reading; a load model needs two, and perf's counters run.
static void print_reading(struct buf *out, const char *sensor, const int64_t *values)
{
	if (strcmp(sensor, "model") == 0 || strcmp(sensor, "perf") == 0)
		return;
	buf_str(out, " =");
	print_value(out, values[DEVICE_ENERGY_RAW], "uJ");
	print_value(out, values[DEVICE_POWER], "mW");
	print_value(out, values[DEVICE_TEMPERATURE], "C");
}

static void print_domain(struct buf *out, const char *sensor, const struct domain *d, const int64_t *values)
{
	buf_printf(out, "%s %s %s %s %s %s %llu %llu %s", sensor, d->name, domain_kind_name(d->kind),
		d->inside[0] != '\0' ? d->inside : "-", yes_no(d->readable), yes_no(d->used),
		(unsigned long long)d->energy_range_uj, (unsigned long long)d->resolution_uj, d->device);
	if (!d->used)
		buf_printf(out, " (%s)", d->why);
	else if (values != NULL)
		print_reading(out, sensor, values);
	buf_char(out, '\n');
	if (d->note[0] != '\0')
		buf_printf(out, "  note: %s\n", d->note);
}

static void print_set(struct buf *out, const struct sensor_set *set, int64_t (*values)[DEVICE_COUNT])
{
	size_t device = 0;
	buf_str(out, "# sensor domain kind inside readable used range_uj resolution_uj device = reading\n");
	for (size_t s = 0; s < set->n_slots; s++)
		for (size_t i = 0; i < set->slots[s].n_domains; i++) {
			const struct domain *d = &set->slots[s].domains[i];
			const int64_t *reading = d->used ? values[device++] : NULL;
			if (strcmp(set->slots[s].ops->name, "nvml") != 0) // its machines are simulated by libraries
				print_domain(out, set->slots[s].ops->name, d, reading);
		}
}

static void point_at(const char *variable, const char *folder, const char *machine, const char *part)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/machines/%s/%s", folder, machine, part);
	setenv(variable, path, 1);
}

static char *read_expected(const char *folder, const char *machine)
{
	char path[512];
	char *text;
	size_t size;
	snprintf(path, sizeof(path), "%s/machines/%s", folder, machine);
	wattle_cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all_in(fd, "expected", 1 << 16, &text, &size), 0);
	return text;
}

// Counting on a whole CPU needs a privilege.
static bool may_use_perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void look_at_machine(void **state)
{
	const struct row *row = *state;
	if (strcmp(row->machine, "perf-only") == 0 && !may_use_perf())
		SKIP_BECAUSE("perf_event_open on a whole CPU is not allowed here");
	const char *folder = getenv("WATTLE_TESTS");
	assert_non_null(folder);
	point_at("WATTLE_SYSFS", folder, row->machine, "sys");
	point_at("WATTLE_PROCFS", folder, row->machine, "proc");
	setenv("WATTLE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
	setenv("WATTLE_ROCM_SMI", "/nonexistent/librocm_smi64.so", 1);

	struct wattle_env env;
	struct wattle_error error = {0};
	struct sensor_set set;
	assert_int_equal(env_open(&env, &error), 0);
	assert_int_equal(sensor_set_open(&set, &env, &(struct sensor_options){0}, &error), 0);

	int64_t(*values)[DEVICE_COUNT] = calloc(set.n_devices + 1, sizeof(*values));
	const struct sensor_context context = {.t_ns = env_now_ns(&env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING};
	sensor_set_read(&set, &context, values);
	struct buf seen;
	buf_init(&seen, 1 << 20);
	print_set(&seen, &set, values);
	char *expected = read_expected(folder, row->machine);
	assert_string_equal(seen.data, expected);

	free(values);
	free(expected);
	buf_finish(&seen);
	sensor_set_close(&set);
	env_close(&env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look_at_machine);
	return rows_run(&tests, "machines");
}
