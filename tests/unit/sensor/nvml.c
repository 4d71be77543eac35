#include "sensor/sensor.h"

#include "nvml_fixture.h"

#include <errno.h>

#define MISSING VALUE_MISSING

/* Readings of a card, by driver. `at_ms` is the time since the library was loaded; only the named values are
 * compared. */
static const struct reading_row {
	const char *teaches, *library, *cards;
	int64_t at_ms;
	struct {
		enum device_metric metric;
		int64_t value;
	} expected[8];
	size_t n_expected;
} reading_rows[] = {
#define EXPECT(...)                                                                                                    \
	.expected = {__VA_ARGS__},                                                                                     \
	.n_expected = sizeof((struct {                                                                                 \
		enum device_metric m;                                                                                  \
		int64_t v;                                                                                             \
	}[]){__VA_ARGS__}) /                                                                                           \
		16
	{"energy: the counter's mJ become uJ", MODERN, "gpu\npower_mw constant 250000\nenergy_start_mj 1000\n", 2000,
		EXPECT({DEVICE_ENERGY_RAW, 501000000}, {DEVICE_POWER, 250000})},
	{"energy: old driver without a counter, power only", OLD, "gpu\npower_mw constant 250000\n", 2000,
		EXPECT({DEVICE_ENERGY_RAW, MISSING}, {DEVICE_POWER, 250000})},
	{"energy: 0 is a valid value", MODERN, "gpu\n", 0, EXPECT({DEVICE_ENERGY_RAW, 0})},
	{"power: a temporary failure is a missing value, not 0", MODERN,
		"gpu\nfield_error 186 0 3\nerror nvmlDeviceGetPowerUsage 999\n", 0,
		EXPECT({DEVICE_POWER, MISSING}, {DEVICE_ENERGY_RAW, 0})},
	{"power cap: the limit in force", MODERN, "gpu\nlimits_mw 100000 300000 250000 200000\n", 0,
		EXPECT({DEVICE_POWER_CAP, 200000})},
	{"memory: the driver's reserved part is left out", MODERN,
		"gpu\nmemory_total_bytes 1000\nmemory_reserved_bytes 100\nmemory_used_bytes 300\n", 0,
		EXPECT({DEVICE_MEMORY_USED, 300})},
	{"memory: before R510 the reserved part is not included", OLD,
		"gpu\nmemory_total_bytes 1000\nmemory_reserved_bytes 100\nmemory_used_bytes 300\n", 0,
		EXPECT({DEVICE_MEMORY_USED, 300})},
	{"memory: if the new call is refused, the old one is used", MODERN,
		"gpu\nmemory_reserved_bytes 100\nmemory_used_bytes 300\nerror nvmlDeviceGetMemoryInfo_v2 13\n", 0,
		EXPECT({DEVICE_MEMORY_USED, 400})},
	{"other metrics: temperature, clocks, utilization", MODERN,
		"gpu\ntemperature_c 67\nutilization_percent 93 41\nsm_clock_mhz 1980\nmemory_clock_mhz 2619\n"
		"throttle_bits 36\n",
		0,
		EXPECT({DEVICE_TEMPERATURE, 67}, {DEVICE_UTILIZATION, 93}, {DEVICE_MEMORY_UTILIZATION, 41},
			{DEVICE_SM_CLOCK, 1980}, {DEVICE_MEMORY_CLOCK, 2619}, {DEVICE_THROTTLE_REASONS, 0x24})},
	{"memory temperature: boards that have it", MODERN, "gpu\nmemory_temperature_c 71\n", 0,
		EXPECT({DEVICE_MEMORY_TEMPERATURE, 71})},
	{"memory temperature: unknown on other boards, not 0", MODERN, "gpu\ntemperature_c 67\n", 0,
		EXPECT({DEVICE_MEMORY_TEMPERATURE, MISSING}, {DEVICE_TEMPERATURE, 67})},
	{"throttling: call under its old name", OLD, "gpu\nthrottle_bits 4\n", 0, EXPECT({DEVICE_THROTTLE_REASONS, 4})},
	{"processes: main, target and others", MODERN,
		"gpu\nprocess 100 C 0 1000\nprocess 300 C 0 30\nprocess 7 C 0 5\nprocess 8 G 0 6\n", 0,
		EXPECT({DEVICE_MAIN_MEMORY, 1000}, {DEVICE_TARGET_MEMORY, 1030}, {DEVICE_OTHERS_MEMORY, 11},
			{DEVICE_TARGET_PROCESSES, 2}, {DEVICE_OTHERS_PROCESSES, 2})},
	{"processes: one that computes and renders counts once", MODERN, "gpu\nprocess 200 CG 0 1000\n", 0,
		EXPECT({DEVICE_TARGET_MEMORY, 1000}, {DEVICE_TARGET_PROCESSES, 1}, {DEVICE_MAIN_MEMORY, 0})},
	{"processes: clients of MPS count", MODERN, "gpu\nprocess 200 M 0 1000\nprocess 7 C 0 30\n", 0,
		EXPECT({DEVICE_TARGET_MEMORY, 1000}, {DEVICE_OTHERS_MEMORY, 30})},
	{"processes: a sum with an unknown part is unknown, the count is known", MODERN,
		"gpu\nprocess 100 C 0 1000\nprocess 200 C 0 unknown\n", 0,
		EXPECT({DEVICE_MAIN_MEMORY, 1000}, {DEVICE_TARGET_MEMORY, MISSING}, {DEVICE_OTHERS_MEMORY, 0},
			{DEVICE_TARGET_PROCESSES, 2})},
	{"processes: none on the GPU: zeros", MODERN, "gpu\n", 0,
		EXPECT({DEVICE_MAIN_MEMORY, 0}, {DEVICE_TARGET_MEMORY, 0}, {DEVICE_OTHERS_PROCESSES, 0})},
	{"processes: records of 16 bytes", OLD, "gpu\nprocess 100 C 0 1000\nprocess 200 C 0 30\nprocess 7 G 0 5\n", 0,
		EXPECT({DEVICE_MAIN_MEMORY, 1000}, {DEVICE_TARGET_MEMORY, 1030}, {DEVICE_OTHERS_MEMORY, 5})},
	{"processes: records of 32 bytes under the name _v3", R535,
		"gpu\nprocess 100 C 0 1000\nprocess 200 C 0 30\nprocess 7 C 0 5\n", 0,
		EXPECT({DEVICE_MAIN_MEMORY, 1000}, {DEVICE_TARGET_MEMORY, 1030}, {DEVICE_OTHERS_MEMORY, 5})},
	{"processes: without the graphics list the others still count", MODERN,
		"gpu\nprocess 100 C 0 1000\nerror nvmlDeviceGetGraphicsRunningProcesses 3\n", 0,
		EXPECT({DEVICE_TARGET_MEMORY, 1000})},
	{"processes: a list that fails makes the sums unknown", MODERN,
		"gpu\nprocess 100 C 0 1000\nerror nvmlDeviceGetGraphicsRunningProcesses 999\n", 0,
		EXPECT({DEVICE_TARGET_MEMORY, MISSING}, {DEVICE_TARGET_PROCESSES, MISSING})},
	{"processes: without the compute list the sums are unknown", MODERN,
		"gpu\nprocess 100 G 0 1000\nerror nvmlDeviceGetComputeRunningProcesses 3\n", 0,
		EXPECT({DEVICE_TARGET_MEMORY, MISSING}, {DEVICE_OTHERS_PROCESSES, MISSING})},
	{"SM use: of the target and of others", MODERN,
		"gpu\nprocess 100 C 40 1\nprocess 300 C 15 1\nprocess 7 C 20 1\n", 500,
		EXPECT({DEVICE_TARGET_UTILIZATION, 55}, {DEVICE_OTHERS_UTILIZATION, 20})},
	{"SM use: no busy process is 0, not unknown", MODERN, "gpu\nprocess 100 C 0 1\n", 500,
		EXPECT({DEVICE_TARGET_UTILIZATION, 0}, {DEVICE_OTHERS_UTILIZATION, 0})},
	{"SM use: invalid samples are left out", MODERN, "gpu\nprocess 100 C 40 1\ngarbage\n", 500,
		EXPECT({DEVICE_TARGET_UTILIZATION, 40}, {DEVICE_OTHERS_UTILIZATION, 0})},
	{"SM use: several samples of one process are averaged", MODERN, "gpu\nprocess 100 C 40 1\nsamples 5\n", 900,
		EXPECT({DEVICE_TARGET_UTILIZATION, 40})},
	{"SM use: unknown where the driver cannot report it (MIG)", MODERN,
		"gpu\nprocess 100 C 40 1\nerror nvmlDeviceGetProcessUtilization 3\n", 500,
		EXPECT({DEVICE_TARGET_UTILIZATION, MISSING}, {DEVICE_OTHERS_UTILIZATION, MISSING})},
};

static void check_reading(void **state)
{
	const struct reading_row *row = *state;
	struct nvml_fixture f;
	size_t count;
	const struct metric *metrics = metric_table(METRIC_DEVICE, &count);
	fixture_open(&f, row->library, row->cards);
	fixture_read(&f, row->at_ms);
	for (size_t i = 0; i < row->n_expected; i++) {
		enum device_metric metric = row->expected[i].metric;
		if (f.rows[0][metric] != row->expected[i].value)
			fail_msg("%s is %lld, not %lld", metrics[metric].name, (long long)f.rows[0][metric],
				(long long)row->expected[i].value);
	}
	fixture_close(&f);
}

// A GPU that answers NOT_SUPPORTED is queried at most once. After any other failure the call is repeated.
static const struct asked_row {
	const char *teaches, *function;
	int code;
	unsigned long calls; // calls by open and three readings
} asked_rows[] = {
	{"called once: energy", "nvmlDeviceGetTotalEnergyConsumption", 3, 1},
	{"called once: power", "nvmlDeviceGetPowerUsage", 3, 1},
	{"called once: power limit", "nvmlDeviceGetEnforcedPowerLimit", 3, 1},
	{"called once: utilization", "nvmlDeviceGetUtilizationRates", 3, 1},
	{"called once: memory, by the new call", "nvmlDeviceGetMemoryInfo_v2", 3, 1},
	{"called once: temperature", "nvmlDeviceGetTemperature", 3, 1},
	{"called once: throttling", "nvmlDeviceGetCurrentClocksEventReasons", 3, 1},
	{"called once: SM use", "nvmlDeviceGetProcessUtilization", 3, 1},
	{"called once: compute processes", "nvmlDeviceGetComputeRunningProcesses_v2", 3, 1},
	{"called once: MPS clients", "nvmlDeviceGetMPSComputeRunningProcesses_v2", 3, 1},
	{"called once: function missing in the driver", "nvmlDeviceGetPowerUsage", 13, 1},
	{"called again: after a time-out", "nvmlDeviceGetPowerUsage", 10, 3},
	{"called again: after an unknown failure", "nvmlDeviceGetTemperature", 999, 3},
	{"both clocks use one function, each is called once", "nvmlDeviceGetClockInfo", 3, 2},
};

static void check_asked(void **state)
{
	const struct asked_row *row = *state;
	struct nvml_fixture f;
	char cards[128];
	snprintf(cards, sizeof(cards), "gpu\nfield_error 186 0 3\nprocess 100 C 5 6\nerror %s %d\n", row->function,
		row->code);
	fixture_open(&f, MODERN, cards);
	for (int64_t t_ms = 0; t_ms < 300; t_ms += 100)
		fixture_read(&f, t_ms);
	assert_int_equal(f.calls(row->function), row->calls);
	fixture_close(&f);
}

static void off_the_bus(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nlost_after_ms 1000\ngpu\npower_mw constant 5\n");
	fixture_read(&f, 999);
	assert_true(value_ok(f.rows[0][DEVICE_ENERGY_RAW]));
	fixture_read(&f, 1000);
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		assert_true(f.rows[0][i] == VALUE_MISSING);
	assert_int_equal(f.rows[1][DEVICE_POWER], 5);
	unsigned long before = f.calls("nvmlDeviceGetTotalEnergyConsumption");
	fixture_read(&f, 1100);
	assert_int_equal(f.calls("nvmlDeviceGetTotalEnergyConsumption"), before + 1); // for the other GPU only
	fixture_close(&f);
}

static void describes_a_card(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN,
		"gpu\ngpu\nname NVIDIA H100 80GB HBM3\nuuid GPU-1234\nmemory_total_bytes 1000\n"
		"memory_reserved_bytes 100\nlimits_mw 1 500000 3 4\n");
	const struct domain *domain = &f.domains[1];
	assert_int_equal(f.n, 2);
	assert_string_equal(domain->name, "gpu-1");
	assert_string_equal(domain->device, "NVIDIA H100 80GB HBM3");
	assert_string_equal(domain->uuid, "GPU-1234");
	assert_int_equal(domain->kind, DOMAIN_GPU);
	assert_int_equal(domain->index, 1);
	assert_int_equal(domain->provenance, PROVENANCE_MEASURED);
	assert_true(domain->has_energy && domain->readable && domain->used);
	assert_int_equal(domain->memory_total_bytes, 900);
	assert_int_equal(domain->resolution_uj, 1000);
	assert_true(domain->max_power_w > 599.9 && domain->max_power_w < 600.1);
	fixture_close(&f);
}

static void no_energy_counter(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nerror nvmlDeviceGetTotalEnergyConsumption 3\n");
	assert_false(f.domains[0].has_energy);
	assert_int_equal(f.domains[0].provenance, PROVENANCE_DERIVED);
	assert_true(f.domains[0].used);
	fixture_close(&f);
}

// A card without energy and power still has memory and utilization.
static void neither_energy_nor_power(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN,
		"gpu\nutilization_percent 50 5\nerror nvmlDeviceGetTotalEnergyConsumption 3\n"
		"error nvmlDeviceGetPowerUsage 3\nfield_error 186 0 3\n");
	fixture_read(&f, 0);
	assert_true(f.domains[0].used);
	assert_true(f.rows[0][DEVICE_POWER] == VALUE_MISSING);
	assert_int_equal(f.rows[0][DEVICE_UTILIZATION], 50);
	fixture_close(&f);
}

// Three cards, the middle one hidden.
static void measures_what_the_target_sees(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\ngpu\ngpu\npower_mw constant 7\n");
	f.options = (struct sensor_options){.cuda_visible_devices = "2,0", .cuda_device_order = "PCI_BUS_ID"};
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.n, 3);
	assert_true(f.domains[0].used && f.domains[2].used);
	assert_true(f.domains[1].unwanted && f.domains[1].readable && !f.domains[1].used);
	assert_string_equal(f.domains[2].name, "gpu-2");
	fixture_read(&f, 0);
	assert_int_equal(f.rows[2][DEVICE_POWER], 7);
	assert_true(f.rows[1][DEVICE_POWER] == VALUE_MISSING);
	fixture_close(&f);
}

static void describes_the_hidden_too(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\ngpu\n");
	f.options = (struct sensor_options){.cuda_visible_devices = "1", .describe_only = true};
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.n, 2);
	assert_true(f.domains[0].readable && !f.domains[0].used);
	assert_string_equal(f.domains[0].why, "hidden by CUDA_VISIBLE_DEVICES");
	assert_true(f.domains[1].used);
	fixture_close(&f);
}

static void a_mig_instance_is_measured_by_its_gpu(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\ngpu\nmig MIG-aaaa\nmig MIG-bbbb\n");
	f.options = (struct sensor_options){.cuda_visible_devices = "MIG-bbbb"};
	assert_int_equal(fixture_try_open(&f), 0);
	assert_true(!f.domains[0].used && f.domains[1].used);
	fixture_close(&f);
}

static void an_unknown_gpu_is_refused(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\nuuid GPU-1234\n");
	f.options = (struct sensor_options){.gpus = "GPU-9"};
	assert_int_equal(fixture_try_open(&f), -EINVAL);
	assert_string_equal(f.error.text,
		"--gpus GPU-9: GPU-9 matches no GPU of this machine; valid are: 0 (GPU-1234)");
	fixture_close(&f);
}

static void another_brand_opens_nothing(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\n");
	f.options = (struct sensor_options){.gpu_brand = "amd"};
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.n, 0);
	assert_int_equal(f.calls(NULL), 0);
	fixture_close(&f);
}

// Reasons for missing GPUs, and their messages.
static const struct absent_row {
	const char *teaches;
	const char *library; // NULL: the fake library
	const char *cards;
	size_t n_in_run, n_described;
	const char *why, *remedy;
} absent_rows[] = {
	{"no library: no message in a run, a message in `sensors`", "/nonexistent/libnvidia-ml.so.1", "gpu\n", 0, 1,
		"/nonexistent/libnvidia-ml.so.1 not found", "install the NVIDIA driver"},
	{"no driver: no message in a run, a message in `sensors`", NULL, "error nvmlInit 9\ngpu\n", 0, 1,
		"the NVIDIA driver is not loaded", "modprobe"},
	{"library and kernel module differ after an upgrade: message", NULL, "error nvmlInit 18\ngpu\n", 1, 1,
		"have different versions", "reboot"},
	{"library that is not NVML: message", "libm.so.6", "gpu\n", 1, 1, "libm.so.6 has no nvmlInit_v2", "newer"},
	{"driver without a GPU: message", NULL, "", 0, 0, NULL, NULL},
	{"GPU without permission: message", NULL, "gpu\nerror nvmlDeviceGetHandleByIndex 4\n", 1, 1, "no permission",
		"usermod"},
	{"GPU lost from the bus: message", NULL, "gpu\nlost_after_ms 0\n", 1, 1, "fell off the bus", "reboot"},
	{"unknown error code: message", NULL, "gpu\nerror nvmlDeviceGetHandleByIndex 77\n", 1, 1, "returns an error",
		"nvidia-smi"},
};

static void check_absent(void **state)
{
	const struct absent_row *row = *state;
	for (int describe = 0; describe < 2; describe++) {
		struct nvml_fixture f;
		fixture_init(&f, MODERN, row->cards);
		if (row->library != NULL)
			f.env.nvml = row->library;
		f.options.describe_only = describe != 0;
		assert_int_equal(fixture_try_open(&f), 0);
		assert_int_equal(f.n, describe ? row->n_described : row->n_in_run);
		if (f.n > 0) {
			assert_string_equal(f.domains[0].name, "gpu-0");
			assert_false(f.domains[0].readable || f.domains[0].used);
			assert_non_null(strstr(f.domains[0].why, row->why));
			assert_non_null(strstr(f.domains[0].remedy, row->remedy));
		}
		fixture_read(&f, 0); // must have no effect
		fixture_close(&f);
	}
}

static void asked_for_a_gpu_without_a_driver(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "error nvmlInit 9\n");
	f.options.gpus = "0";
	assert_int_equal(fixture_try_open(&f), -EINVAL);
	assert_string_equal(f.error.text, "--gpus 0: no NVIDIA GPU can be used: the NVIDIA driver is not loaded");
	fixture_close(&f);
}

/* The driver samples SM use every 200 ms here, wattle reads every 100 ms: between two samples the last value is
 * kept; after two periods without a sample the process is idle. */
static void sm_use_holds_between_samples(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nsample_period_ms 200\nprocess 100 C 60 1 0 1001\n");
	for (int64_t t_ms = 200; t_ms < 1400; t_ms += 100) {
		fixture_read(&f, t_ms);
		assert_int_equal(f.rows[0][DEVICE_TARGET_UTILIZATION], 60);
	}
	for (int64_t t_ms = 1400; t_ms < 2000; t_ms += 100) {
		fixture_read(&f, t_ms);
		assert_int_equal(f.rows[0][DEVICE_TARGET_UTILIZATION], 0);
	}
	fixture_close(&f);
}

static void without_a_target_there_are_only_others(void **state)
{
	struct nvml_fixture f;
	const struct sensor_context nobody = {.t_ns = 600 * NS_PER_MS};
	fixture_open(&f, MODERN, "gpu\nprocess 100 C 60 1000\n");
	fixture_read(&f, 500);
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		f.rows[0][i] = VALUE_MISSING;
	sensor_nvml.read(f.state, &nobody, f.rows);
	assert_int_equal(f.rows[0][DEVICE_OTHERS_MEMORY], 1000);
	assert_true(f.rows[0][DEVICE_TARGET_MEMORY] == VALUE_MISSING);
	assert_true(f.rows[0][DEVICE_MAIN_MEMORY] == VALUE_MISSING);
	assert_true(f.rows[0][DEVICE_TARGET_UTILIZATION] == VALUE_MISSING);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, reading_rows, check_reading);
	ROWS_ADD(&tests, asked_rows, check_asked);
	ROWS_ADD(&tests, absent_rows, check_absent);
	ROWS_ADD_ONE(&tests, "GPU lost from the bus: not queried again, the others are", off_the_bus);
	ROWS_ADD_ONE(&tests, "card: description", describes_a_card);
	ROWS_ADD_ONE(&tests, "card without an energy counter: energy from power", no_energy_counter);
	ROWS_ADD_ONE(&tests, "card without energy and power: listed", neither_energy_nor_power);
	ROWS_ADD_ONE(&tests, "only GPUs visible to the target are measured", measures_what_the_target_sees);
	ROWS_ADD_ONE(&tests, "GPUs hidden from the target are described", describes_the_hidden_too);
	ROWS_ADD_ONE(&tests, "MIG instance: its GPU is measured", a_mig_instance_is_measured_by_its_gpu);
	ROWS_ADD_ONE(&tests, "unknown GPU: refused with a list of the valid ones", an_unknown_gpu_is_refused);
	ROWS_ADD_ONE(&tests, "--gpu-brand amd: NVIDIA GPUs are not opened", another_brand_opens_nothing);
	ROWS_ADD_ONE(&tests, "--gpus without a driver: an error", asked_for_a_gpu_without_a_driver);
	ROWS_ADD_ONE(&tests, "SM use: kept between two samples of the driver", sm_use_holds_between_samples);
	ROWS_ADD_ONE(&tests, "no target: all processes are others", without_a_target_there_are_only_others);
	return rows_run(&tests, "nvml");
}
