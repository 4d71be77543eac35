#include "sensor/sensor.h"

#include "one_sensor.h"
#include "energy/counter.h"

#define PM "cray/pm_counters/"

struct row {
	const char *teaches;
	struct one_file files[ONE_FILES_MAX];
	const char *expected;
};

// clang-format off
static const struct row rows[] = {
	{"no Cray", {{"kernel/x", ""}}, ""},
	{"energy and power with timestamps", {
		{PM "energy", "12345 J 1700000999000000 us\n"}, {PM "power", "250 W 1700000999000000 us\n"},
	}, "node - yes 12345000000 250000\n"},
	{"XC node: one accelerator without a number, no timestamps", {
		{PM "energy", "100 J\n"}, {PM "accel_energy", "40 J\n"},
	}, "node - yes 100000000 -\ngpu-0 node yes 40000000 -\n"},
	{"accelerators by number, with gaps", {
		{PM "accel0_energy", "1 J\n"}, {PM "accel3_energy", "4 J\n"},
	}, "gpu-0 node yes 1000000 -\ngpu-3 node yes 4000000 -\n"},
	{"power only: integrated", {{PM "cpu_power", "90 W 5 us\n"}}, "package-0 node yes - 90000\n"},
	{"invalid energy: power is used", {
		{PM "energy", "lots J 5 us\n"}, {PM "power", "90 W 5 us\n"},
	}, "node - yes - 90000\n"},
	{"wrong unit, no unit, too large, empty: refused", {
		{PM "energy", "5 W 5 us\n"}, {PM "cpu_energy", "5\n"},
		{PM "memory_energy", "99999999999999 J 5 us\n"}, {PM "accel0_energy", ""},
	}, "node - no (energy contains no number, or the kernel can't read it)\n"
	   "package-0 node no (cpu_energy contains no number, or the kernel can't read it)\n"
	   "dram-0 node no (memory_energy contains no number, or the kernel can't read it)\n"
	   "gpu-0 node no (accel0_energy contains no number, or the kernel can't read it)\n"},
};
// clang-format on

static void look(void **state)
{
	const struct row *row = *state;
	one_compare(&sensor_cray, row->files, row->expected);
}

// Frames of a run, a tenth of a second each, and the counter's results.
static const struct film {
	const char *teaches;
	struct frame {
		const char *energy, *startup, *generation;
		enum counter_event event;
	} frames[4];
	uint64_t total_uj;
} films[] = {
	{"counter that counts",
		{{"100 J 1 us\n", "7\n", "1\n", COUNTER_FIRST}, {"120 J 2 us\n", "7\n", "1\n", COUNTER_OK},
			{"120 J 2 us\n", "7\n", "1\n", COUNTER_STALLED}, {"141 J 3 us\n", "7\n", "1\n", COUNTER_OK}},
		41000000},
	{"restart: energy in between is unknown, whether the value is lower or not",
		{{"100 J 1 us\n", "7\n", "1\n", COUNTER_FIRST}, {"120 J 2 us\n", "7\n", "1\n", COUNTER_OK},
			{"130 J 1 us\n", "8\n", "1\n", COUNTER_RESET}, {"131 J 2 us\n", "8\n", "1\n", COUNTER_OK}},
		21000000},
	{"restart while the counter is unreadable",
		{{"100 J 1 us\n", "7\n", "1\n", COUNTER_FIRST}, {"", "8\n", "1\n", COUNTER_GAP},
			{"105 J 2 us\n", "8\n", "1\n", COUNTER_RESET}, {"107 J 3 us\n", "8\n", "1\n", COUNTER_OK}},
		2000000},
	{"new generation: a changed power cap, the counter continues",
		{{"100 J 1 us\n", "7\n", "1\n", COUNTER_FIRST}, {"120 J 2 us\n", "7\n", "2\n", COUNTER_OK},
			{"140 J 3 us\n", "7\n", "3\n", COUNTER_OK}, {"150 J 4 us\n", "7\n", "3\n", COUNTER_OK}},
		50000000},
	{"no startup file: a decrease is a restart",
		{{"100000 J 1 us\n", NULL, NULL, COUNTER_FIRST}, {"100020 J 2 us\n", NULL, NULL, COUNTER_OK},
			{"5 J 3 us\n", NULL, NULL, COUNTER_RESET}, {"6 J 4 us\n", NULL, NULL, COUNTER_OK}},
		21000000},
};

static void runs(void **state)
{
	const struct film *film = *state;
	struct one_sensor one;
	struct counter counter;
	const struct one_file files[] = {{PM "energy", film->frames[0].energy}, {PM "freshness", "1\n"}, {0}};
	one_make(&one, files);
	assert_int_equal(one_open(&one, &sensor_cray, NULL, NULL), 0);
	counter_init(&counter, 0, one.domains[0].max_power_w);
	for (size_t i = 0; i < ARRAY_SIZE(film->frames); i++, one.now_ns += NS_PER_S / 10) {
		const struct frame *frame = &film->frames[i];
		one_write(&one, &(struct one_file){PM "energy", frame->energy});
		one_write(&one, &(struct one_file){PM "startup", frame->startup});
		one_write(&one, &(struct one_file){PM "generation", frame->generation});
		one_read(&one);
		assert_int_equal(counter_feed(&counter, one.now_ns, one.rows[0][DEVICE_ENERGY_RAW], false),
			frame->event);
	}
	assert_int_equal(counter.total, film->total_uj);
	one_finish(&one);
}

static void stamps_are_ours(void **state)
{
	struct one_sensor one;
	// 0.25 s ago by the wall clock, at 10 Hz.
	const struct one_file files[] = {{PM "energy", "100 J 1700000999750000 us\n"}, {PM "raw_scan_hz", "10\n"}, {0}};
	one_make(&one, files);
	assert_int_equal(one_open(&one, &sensor_cray, NULL, NULL), 0);
	assert_int_equal(one.domains[0].update_period_ns, NS_PER_S / 10);
	assert_int_equal(one.domains[0].resolution_uj, 1000000);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_ENERGY_TIME], INT64_C(999750) * NS_PER_MS);
	one_finish(&one);
}

// Cray's package counter covers all sockets: used beside another sensor's package it would count that one twice.
static void gives_way(void **state)
{
	const struct one_file files[] = {{PM "energy", "500 J\n"}, {PM "cpu_energy", "100 J\n"},
		{PM "memory_energy", "40 J\n"}, {"class/powercap/intel-rapl:1/name", "package-1\n"},
		{"class/powercap/intel-rapl:1/energy_uj", "7\n"}, {0}};
	static const char *const expected[] = {"package-1", "node", "dram-0"};
	struct one_sensor one;
	struct sensor_set set;
	one_make(&one, files);
	setenv("WATTLE_NVML", "/nonexistent.so", 1);
	assert_int_equal(sensor_set_open(&set, &one.env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(set.n_devices, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(set.devices[i]->name, expected[i]);
	sensor_set_close(&set);
	env_close(&one.env);
	tree_finish(&one.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look);
	ROWS_ADD(&tests, films, runs);
	ROWS_ADD_ONE(&tests, "wall-clock timestamp: converted to CLOCK_MONOTONIC; rate and step are stated",
		stamps_are_ours);
	ROWS_ADD_ONE(&tests, "package counter of all sockets: not used if another sensor reads a package", gives_way);
	return rows_run(&tests, "cray");
}
