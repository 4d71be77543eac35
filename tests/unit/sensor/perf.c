#include "sensor/internal.h"

#include "one_sensor.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#define PMU "bus/event_source/devices/power"
#define SCALE "2.3283064365386962890625e-10\n"
#define EVENT(name, code)                                                                                              \
	{PMU "/events/" name, code}, {PMU "/events/" name ".unit", "Joules\n"},                                        \
	{                                                                                                              \
		PMU "/events/" name ".scale", SCALE                                                                    \
	}
#define PLACE(cpu, package, die)                                                                                       \
	{"devices/system/cpu/cpu" cpu "/topology/physical_package_id", package},                                       \
	{                                                                                                              \
		"devices/system/cpu/cpu" cpu "/topology/die_id", die                                                   \
	}

/* ---- event description to numbers ---- */

static const struct encoding {
	const char *teaches, *terms, *format; // of the term "event"
	int result;
	uint64_t config, config1;
} encodings[] = {
	{"description as the kernel writes it", "event=0x02", "config:0-7\n", 0, 2, 0},
	{"a decimal number", "event=17", "config:0-7\n", 0, 17, 0},
	{"term without a value: 1", "event", "config:4\n", 0, 16, 0},
	{"bits in two ranges, the lowest first", "event=0x1ff", "config:0-7,32\n", 0, 0x1000000ff, 0},
	{"another word", "event=3", "config1:8-11\n", 0, 0, 0x300},
	{"a whole word", "event=0xffffffffffffffff", "config:0-63\n", 0, UINT64_MAX, 0},
	{"a config word by name, beside a term", "event=1,config1=0x5", "config:0-7\n", 0, 1, 5},
	{"value larger than the bits: refused", "event=0x100", "config:0-7\n", -EINVAL, 0, 0},
	{"term without a format: refused", "umask=1", "config:0-7\n", -EINVAL, 0, 0},
	{"format of an unknown config word: refused", "event=1", "config9:0-7\n", -EINVAL, 0, 0},
	{"format without bits: refused", "event=1", "config\n", -EINVAL, 0, 0},
	{"format with invalid bits: refused", "event=1", "config:7-0\n", -EINVAL, 0, 0},
	{"format beyond the word: refused", "event=1", "config:0-64\n", -EINVAL, 0, 0},
	{"no number", "event=x", "config:0-7\n", -EINVAL, 0, 0},
	{"trailing text after the number: refused", "event=1;2", "config:0-7\n", -EINVAL, 0, 0},
	{"name that leaves the folder: refused", "../../x=1", "config:0-7\n", -EINVAL, 0, 0},
	{"empty description", "", "config:0-7\n", -EINVAL, 0, 0},
	{"comma at the end", "event=1,", "config:0-7\n", -EINVAL, 0, 0},
};

static void encode(void **state)
{
	const struct encoding *row = *state;
	const struct one_file files[] = {{PMU "/format/event", row->format}, {0}};
	struct one_sensor one;
	struct perf_event_code code = {0};
	one_make(&one, files);
	assert_int_equal(perf_pmu_encode(one.env.sysfs_fd, PMU, row->terms, &code), row->result);
	assert_int_equal(code.config, row->config);
	assert_int_equal(code.config1, row->config1);
	env_close(&one.env);
	tree_finish(&one.tree);
}

static const struct list {
	const char *teaches, *text;
	size_t n;
	int cpus[6];
} lists[] = {
	{"one", "0\n", 1, {0}},
	{"CPU mask: list", "0,16\n", 2, {0, 16}},
	{"a range", "2-4", 3, {2, 3, 4}},
	{"both", "0-1,8,10-11", 5, {0, 1, 8, 10, 11}},
	{"CPU mask: no more CPUs than fit", "0-100", 6, {0, 1, 2, 3, 4, 5}},
	{"CPU mask: empty", "\n", 0, {0}},
	{"CPU mask: words", "all", 0, {0}},
	{"CPU mask: CPUs before invalid text", "3,x", 1, {3}},
	{"CPU mask: range without an end", "3-", 0, {0}},
};

static void parse_list(void **state)
{
	const struct list *row = *state;
	int cpus[6] = {0};
	assert_int_equal(cpu_list_parse(row->text, cpus, ARRAY_SIZE(cpus)), row->n);
	for (size_t i = 0; i < row->n; i++)
		assert_int_equal(cpus[i], row->cpus[i]);
}

/* ---- the PMU on simulated trees: type 1 is that of software events, whose code 0 is the clock of a CPU in ns ---- */

struct row {
	const char *teaches;
	struct one_file files[ONE_FILES_MAX];
	const char *expected; // "name inside kind used" for each domain
};

#define ON_ONE_CPU                                                                                                     \
	{PMU "/type", "1\n"}, {PMU "/cpumask", "0\n"},                                                                 \
	{                                                                                                              \
		PMU "/format/event", "config:0-7\n"                                                                    \
	}

// clang-format off
static const struct row rows[] = {
	{"no PMU", {{"kernel/x", ""}}, ""},
	{"PMU whose type is no number", {{PMU "/type", "dynamic\n"}, {PMU "/cpumask", "0\n"}, EVENT("energy-pkg", "event=0\n")}, ""},
	{"PMU without CPUs", {{PMU "/type", "1\n"}, EVENT("energy-pkg", "event=0\n")}, ""},
	{"all events: core and gpu are parts of the package, that of psys, memory of none", {
		ON_ONE_CPU, EVENT("energy-pkg", "event=0x00\n"), EVENT("energy-cores", "event=0x00\n"),
		EVENT("energy-gpu", "event=0x00\n"), EVENT("energy-ram", "event=0x00\n"), EVENT("energy-psys", "event=0x00\n"),
	}, "package-0 psys package yes\ncore-0 package-0 core yes\nuncore-0 package-0 uncore yes\ndram-0 - dram yes\n"
	   "psys - psys yes\n"},
	{"the package by its topology", {
		ON_ONE_CPU, PLACE("0", "3\n", "0\n"), EVENT("energy-pkg", "event=0x00\n"),
	}, "package-3 - package yes\n"},
	{"two CPUs of one package in the mask: two dies", {
		{PMU "/type", "1\n"}, {PMU "/cpumask", "0-1\n"}, {PMU "/format/event", "config:0-7\n"},
		PLACE("0", "0\n", "0\n"), PLACE("1", "0\n", "1\n"), EVENT("energy-pkg", "event=0x00\n"), EVENT("energy-cores", "event=0x00\n"),
	}, "package-0-die-0 - package yes\ncore-0-die-0 package-0-die-0 core yes\n"
	   "package-0-die-1 - package yes\ncore-0-die-1 package-0-die-1 core yes\n"},
	{"AMD: one counter for each socket, whatever the number of dies in the mask", {
		{PMU "/type", "1\n"}, {PMU "/cpumask", "0-1\n"}, {PMU "/format/event", "config:0-7\n"},
		{"cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n"},
		PLACE("0", "0\n", "0\n"), PLACE("1", "0\n", "1\n"), EVENT("energy-pkg", "event=0x00\n"),
	}, "package-0 - package yes\npackage-0 - package no (another CPU of the same package reads the same counter)\n"},
	{"no topology: one CPU in the mask for each package", {
		{PMU "/type", "1\n"}, {PMU "/cpumask", "0,1\n"}, {PMU "/format/event", "config:0-7\n"}, EVENT("energy-pkg", "event=0x00\n"),
	}, "package-0 - package yes\npackage-1 - package yes\n"},
	{"events without a scale, in other units, and invalid: skipped", {
		ON_ONE_CPU, {PMU "/events/energy-pkg", "event=0x00\n"}, {PMU "/events/energy-pkg.unit", "Joules\n"},
		{PMU "/events/energy-ram", "event=0x00\n"}, {PMU "/events/energy-ram.unit", "Watts\n"},
		{PMU "/events/energy-ram.scale", SCALE}, EVENT("energy-cores", "event=0x1ff\n"),
	}, "package-0 - package no (events/energy-pkg has no scale in joules)\n"
	   "core-0 package-0 core no (can't parse events/energy-cores)\n"
	   "dram-0 - dram no (events/energy-ram has no scale in joules)\n"},
	{"CPU that does not exist", {
		{PMU "/type", "1\n"}, {PMU "/cpumask", "9999\n"}, {PMU "/format/event", "config:0-7\n"}, EVENT("energy-pkg", "event=0x00\n"),
	}, "package-0 - package no (perf_event_open on CPU 9999: Invalid argument)\n"},
	{"type that this kernel does not support", {
		{PMU "/type", "2147483000\n"}, {PMU "/cpumask", "0\n"}, {PMU "/format/event", "config:0-7\n"}, EVENT("energy-pkg", "event=0x00\n"),
	}, "package-0 - package no (perf_event_open on CPU 0: No such file or directory)\n"},
};
// clang-format on

static bool may_use_perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void look(void **state)
{
	const struct row *row = *state;
	struct one_sensor one;
	struct buf seen;
	if (!may_use_perf() || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP_BECAUSE("perf_event_open on two whole CPUs is not possible here");
	one_make(&one, row->files);
	assert_int_equal(one_open(&one, &sensor_perf, NULL, NULL), 0);
	buf_init(&seen, 1 << 16);
	buf_str(&seen, "");
	for (size_t i = 0; i < one.n; i++) {
		const struct domain *d = &one.domains[i];
		buf_printf(&seen, "%s %s %s %s", d->name, d->inside[0] != '\0' ? d->inside : "-",
			domain_kind_name(d->kind), d->used ? "yes" : "no");
		buf_printf(&seen, d->used ? "\n" : " (%s)\n", d->why);
	}
	assert_string_equal(seen.data != NULL ? seen.data : "", row->expected);
	buf_finish(&seen);
	one_finish(&one);
}

static const struct one_file clock_pmu[] = {ON_ONE_CPU, EVENT("energy-pkg", "event=0x00\n"), {0}};

// 2^-32 J a nanosecond: a second of CPU 0 is 0.2328 J.
static void counts_for_real(void **state)
{
	struct one_sensor one;
	if (!may_use_perf())
		SKIP_BECAUSE("perf_event_open on a whole CPU is not allowed here");
	one_make(&one, clock_pmu);
	assert_int_equal(one_open(&one, &sensor_perf, NULL, NULL), 0);
	one_read(&one);
	int64_t first_uj = one.rows[0][DEVICE_ENERGY_RAW];
	usleep(50000);
	one_read(&one);
	int64_t spent_uj = one.rows[0][DEVICE_ENERGY_RAW] - first_uj;
	assert_true(first_uj >= 0 && spent_uj >= 11641 &&
		spent_uj < 10 * 11641); // at least 50 ms; longer on a busy machine
	one_finish(&one);
}

/* A kernel that allows nothing, for an unprivileged process. */
static const struct refusal {
	const char *teaches, *paranoid, *why, *remedy;
} refusals[] = {
	{"perf_event_paranoid 2, the default: CAP_PERFMON is enough", "2\n",
		"perf_event_paranoid is 2, which requires CAP_PERFMON",
		"sudo setcap cap_perfmon+ep $(command -v wattle) # or: sudo sysctl kernel.perf_event_paranoid=0"},
	{"perf_event_paranoid 4, in some distributions: CAP_PERFMON is not enough", "4\n",
		"perf_event_paranoid is 4, which requires CAP_SYS_ADMIN", "sudo sysctl kernel.perf_event_paranoid=0"},
	{"perf_event_paranoid -1, and still refused", "-1\n",
		"perf_event_paranoid is -1, but perf_event_open is refused: a system call filter (seccomp) "
		"blocks it",
		""},
};

static void refused(void **state)
{
	const struct refusal *row = *state;
	struct one_sensor one;
	if (geteuid() != 0)
		SKIP_BECAUSE("needs root, to become a user without the permission");
	one_make(&one, clock_pmu);
	one_write(&one, &(struct one_file){"sys/kernel/perf_event_paranoid", row->paranoid});
	char path[512];
	tree_path(&one.tree, path, ".");
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	bool allowed = may_use_perf();
	int r = allowed ? 0 : one_open(&one, &sensor_perf, NULL, NULL);
	assert_int_equal(seteuid(0), 0);
	if (allowed) {
		env_close(&one.env);
		tree_finish(&one.tree);
		SKIP_BECAUSE("this kernel allows perf to everybody");
	}
	assert_int_equal(r, 0);
	assert_false(one.domains[0].readable);
	assert_string_equal(one.domains[0].why, row->why);
	assert_string_equal(one.domains[0].remedy, row->remedy);
	one_finish(&one);
}

/* ---- beside powercap ---- */

// The same package through both: one of them is sampled, powercap if it is readable.
static const struct pair {
	const char *teaches, *energy_uj, *powercap_name, *used_by, *why;
} pairs[] = {
	{"powercap first", "100\n", "package-0\n", "powercap", "powercap already measures package-0"},
	{"powercap unreadable: perf is used", "bad\n", "package-0\n", "perf", "powercap"},
	{"powercap counts a die, perf the socket: counted once", "100\n", "package-0-die-0\n", "powercap",
		"powercap already measures package-0-die-0"},
};

static void one_of_two(void **state)
{
	const struct pair *row = *state;
	struct one_sensor one;
	struct sensor_set set;
	if (!may_use_perf())
		SKIP_BECAUSE("perf_event_open on a whole CPU is not allowed here");
	one_make(&one, clock_pmu);
	one_write(&one, &(struct one_file){"class/powercap/intel-rapl:0/name", row->powercap_name});
	one_write(&one, &(struct one_file){"class/powercap/intel-rapl:0/energy_uj", row->energy_uj});
	one_write(&one, &(struct one_file){"cpuinfo", "processor\t: 0\nmodel name\t: A CPU\n"});
	setenv("WATTLE_NVML", "/nonexistent.so", 1);
	assert_int_equal(sensor_set_open(&set, &one.env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(set.n_devices, 1);
	assert_string_equal(set.sources[0], row->used_by);
	for (size_t s = 0; s < set.n_slots; s++)
		if (strcmp(set.slots[s].ops->name, "perf") == 0 && !set.slots[s].domains[0].used)
			assert_string_equal(set.slots[s].domains[0].why, row->why);
	sensor_set_close(&set);
	env_close(&one.env);
	tree_finish(&one.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, encodings, encode);
	ROWS_ADD(&tests, lists, parse_list);
	ROWS_ADD(&tests, rows, look);
	ROWS_ADD_ONE(&tests, "counter that really runs", counts_for_real);
	ROWS_ADD(&tests, refusals, refused);
	ROWS_ADD(&tests, pairs, one_of_two);
	return rows_run(&tests, "perf");
}
