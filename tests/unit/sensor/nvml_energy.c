/* Sources of energy and power, and the quality of their timestamps. */
#include "sensor/gpu/nvml.h"

#include "nvml_fixture.h"

#define MISSING VALUE_MISSING

static const struct source_row {
	const char *teaches, *library, *cards;
	int64_t energy_uj, power_mw, average_mw; // 2 s after the start, at 250 W
	bool has_energy;
} source_rows[] = {
	{"current driver: counter call, and power by field", MODERN, "", 500000000, 250000, 250000, true},
	{"no counter call: field 191", MODERN, "energy_by_field\n", 500000000, 250000, 250000, true},
	{"no counter call, no field 191: field 83", MODERN, "energy_by_field\nfield_error 191 0 3\n", 500000000, 250000,
		250000, true},
	{"no counter", MODERN, "error nvmlDeviceGetTotalEnergyConsumption 3\n", MISSING, 250000, 250000, false},
	{"each field is supported or not on its own", MODERN, "field_error 185 0 3\n", 500000000, 250000, MISSING,
		true},
	{"no instantaneous power: the averaged power", MODERN, "field_error 186 0 3\n", 500000000, 250000, 250000,
		true},
	{"all fields fail", MODERN, "error nvmlDeviceGetFieldValues 999\n", 500000000, 250000, MISSING, true},
	{"driver without fields", OLD, "", MISSING, 250000, MISSING, false},
};

static void check_source(void **state)
{
	const struct source_row *row = *state;
	struct nvml_fixture f;
	char cards[256];
	snprintf(cards, sizeof(cards), "gpu\npower_mw constant 250000\n%s", row->cards);
	fixture_open(&f, row->library, cards);
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], row->energy_uj);
	assert_int_equal(f.rows[0][DEVICE_POWER], row->power_mw);
	assert_int_equal(f.rows[0][DEVICE_POWER_AVERAGE], row->average_mw);
	assert_int_equal(f.domains[0].has_energy, row->has_energy);
	assert_int_equal(f.domains[0].provenance, row->has_energy ? PROVENANCE_MEASURED : PROVENANCE_DERIVED);
	fixture_close(&f);
}

// Power alternates between 100 and 300 W; instantaneous power and the device's one-second mean differ.
static void instant_and_average(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\npower_mw step 100000 300000 1000\n");
	fixture_read(&f, 2750);
	assert_int_equal(f.rows[0][DEVICE_POWER], 300000);
	assert_int_equal(f.rows[0][DEVICE_POWER_AVERAGE], 200000);
	fixture_close(&f);
}

static const struct value_row {
	const char *teaches;
	int type;
	union nvml_value value;
	bool good;
	uint64_t expected;
} value_rows[] = {
	{"value: a floating-point number is rounded", NVML_VALUE_DOUBLE, {.real = 41.7}, true, 42},
	{"value: a negative number is missing", NVML_VALUE_DOUBLE, {.real = -1}, false, 0},
	{"value: NaN is missing", NVML_VALUE_DOUBLE, {.real = NAN}, false, 0},
	{"value: 32 bits, other bytes are ignored", NVML_VALUE_UINT, {.u64 = UINT64_C(0xffffffff00000007)}, true,
		7},
	{"value: 64 bits", NVML_VALUE_U64, {.u64 = UINT64_C(1) << 40}, true, UINT64_C(1) << 40},
	{"value: signed", NVML_VALUE_I64, {.i64 = -5}, false, 0},
	{"value: signed, 32 bits", NVML_VALUE_INT, {.i32 = 5}, true, 5},
	{"value: 16 bits", NVML_VALUE_U16, {.u64 = UINT64_C(0xffff0009)}, true, 9},
	{"value: unknown type is missing", 99, {.u64 = 5}, false, 0},
};

static void check_value(void **state)
{
	const struct value_row *row = *state;
	uint64_t value = 0;
	bool good = nvml_value_u64(&row->value, row->type, &value);
	assert_int_equal(good, row->good);
	if (good)
		assert_int_equal(value, row->expected);
}

/* ---- time stamps ---- */

// 'v': value and timestamp both change; '.': both stay; 'q': only the timestamp changes; 's': only the value changes.
static const struct stamp_row {
	const char *teaches, *history;
	bool believed;
} stamp_rows[] = {
	{"timestamp: changes exactly with the value: trusted", "v..v.v.v", true},
	{"timestamp: too few readings: not trusted", "v.v.v", false},
	{"timestamp: value always changes: not trusted", "vvvvvvvvvvvv", false},
	{"timestamp: value never changes: not trusted", "v...........", false},
	{"timestamp: time of the query: not trusted", "v..v.v.vq", false},
	{"timestamp: wrong once: never trusted again", "vq.v..v.v.v.v.v.v", false},
	{"timestamp: value changes without it: not trusted", "v..v.v.vs.v.v.v.v.v", false},
};

static void check_stamp(void **state)
{
	const struct stamp_row *row = *state;
	struct nvml_field_time time = {0};
	uint64_t value_mj = 1000;
	int64_t stamp_us = 1000;
	bool believed = false;
	for (const char *at = row->history; *at != '\0'; at++) {
		value_mj += *at == 'v' || *at == 's';
		stamp_us += *at == 'v' || *at == 'q' ? 20000 : 0;
		believed = nvml_field_time_feed(&time, value_mj, stamp_us);
	}
	assert_int_equal(believed, row->believed);
}

static void read_at_10_ms(struct nvml_fixture *f, int64_t until_ms)
{
	for (int64_t t_ms = 0; t_ms <= until_ms; t_ms += 10)
		fixture_read(f, t_ms);
}

// The counter is updated every 50 ms; its field has the time of the update.
static void stamps_of_the_counter(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nenergy_period_ms 50\nfield_times\n");
	read_at_10_ms(&f, 430);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 40000000);
	assert_true(llabs(f.rows[0][DEVICE_ENERGY_TIME] - 400 * NS_PER_MS) < 2000); // timestamps are whole microseconds
	fixture_close(&f);
}

static void stamps_of_the_query(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\nenergy_period_ms 50\n");
	read_at_10_ms(&f, 430);
	assert_true(f.rows[0][DEVICE_ENERGY_TIME] == MISSING);
	fixture_close(&f);
}

/* ---- the buffer of power samples ---- */

#define NO_COUNTER "error nvmlDeviceGetTotalEnergyConsumption 3\n"

/* Power alternates 10 times a second and is read 10 times a second: instantaneous readings would always see "off".
 * The driver's buffer has all samples. */
static void buffer_sees_between_ticks(void **state)
{
	struct nvml_fixture f;
	double sum_mw = 0;
	fixture_open(&f, MODERN, "gpu\npower_mw step 100000 300000 100\npower_samples 10 120\n" NO_COUNTER);
	for (int64_t t_ms = 100; t_ms <= 2000; t_ms += 100) {
		fixture_read(&f, t_ms);
		sum_mw += (double)f.rows[0][DEVICE_POWER];
	}
	assert_true(fabs(sum_mw / 20 - 200000) < 25000); // samples near a change may be either
	fixture_close(&f);
}

static void buffer_tells_its_period(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\npower_samples 20 120\n" NO_COUNTER);
	f.freeze(5000 * NS_PER_MS);
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.domains[0].update_period_ns, 20 * NS_PER_MS);
	assert_int_equal(f.domains[0].update_jitter_ns, 0);
	fixture_close(&f);
}

// Between two samples the value is missing; a buffer that stopped is replaced by instantaneous readings.
static void buffer_without_news(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN,
		"gpu\npower_mw constant 70000\npower_samples 100 20\nerror nvmlDeviceGetSamples 6 1000\n" NO_COUNTER);
	fixture_read(&f, 900);
	assert_int_equal(f.rows[0][DEVICE_POWER], 70000);
	fixture_read(&f, 950);
	assert_true(f.rows[0][DEVICE_POWER] == MISSING);
	fixture_read(&f, 1100);
	assert_true(f.rows[0][DEVICE_POWER] == MISSING);
	fixture_read(&f, 1200);
	assert_int_equal(f.rows[0][DEVICE_POWER], 70000);
	fixture_close(&f);
}

static const struct mean_row {
	const char *teaches;
	struct nvml_sample samples[5];
	size_t n;
	uint64_t seen_us;
	double expected_mw;
	uint64_t expected_seen_us;
} mean_rows[] = {
	{"mean: weighted by the time of each sample", {{2000, {.u32 = 100}}, {5000, {.u32 = 200}}}, 2, 1000, 175, 5000},
	{"mean: samples seen before are left out", {{500, {.u32 = 9}}, {2000, {.u32 = 100}}}, 2, 1000, 100, 2000},
	{"mean: samples out of order are left out", {{3000, {.u32 = 100}}, {2000, {.u32 = 900}}}, 2, 1000, 100, 3000},
	{"mean: the first sample has the weight of the second", {{2000, {.u32 = 100}}, {3000, {.u32 = 200}}}, 2, 0, 150,
		3000},
	{"mean: the first sample after lost ones does not represent them",
		{{901000, {.u32 = 100}}, {902000, {.u32 = 300}}}, 2, 1000, 200, 902000},
	{"mean: samples above any board's power are left out", {{2000, {.u64 = UINT32_MAX}}, {3000, {.u32 = 50}}}, 2,
		1000, 50, 3000},
};

static void check_mean(void **state)
{
	const struct mean_row *row = *state;
	uint64_t seen_us = row->seen_us;
	double mean_mw;
	assert_true(nvml_power_mean(row->samples, row->n, NVML_VALUE_UINT, &seen_us, &mean_mw));
	assert_true(fabs(mean_mw - row->expected_mw) < 1e-9);
	assert_int_equal(seen_us, row->expected_seen_us);
}

static void mean_of_nothing(void **state)
{
	const struct nvml_sample old = {1000, {.u32 = 100}};
	uint64_t seen_us = 1000;
	double mean_mw;
	assert_false(nvml_power_mean(&old, 1, NVML_VALUE_UINT, &seen_us, &mean_mw));
	assert_false(nvml_power_mean(&old, 0, NVML_VALUE_UINT, &seen_us, &mean_mw));
}

/* ---- modules, extra readings ---- */

// Grace-Hopper refuses the GPU scope: the module gets a row of its own, and the GPU none of its energy.
static void module_scope(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN,
		"gpu\nmodule_mw 600000\nutilization_percent 50 5\nerror nvmlDeviceGetPowerUsage 3\nfield_error 186 0 3\n"
		"field_error 185 0 3\n" NO_COUNTER);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.domains[1].name, "module-0");
	assert_int_equal(f.domains[1].kind, DOMAIN_MODULE);
	assert_true(f.domains[1].used && f.domains[1].has_energy && !f.domains[0].has_energy);
	assert_string_equal(f.domains[0].inside, "module-0");
	assert_non_null(strstr(f.domains[1].note, "CPU, GPU and memory"));
	assert_non_null(strstr(f.domains[0].note, "module-0"));
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[1][DEVICE_ENERGY_RAW], 1200000000);
	assert_int_equal(f.rows[1][DEVICE_POWER], 600000);
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] == MISSING && f.rows[0][DEVICE_POWER] == MISSING);
	assert_int_equal(f.rows[0][DEVICE_UTILIZATION], 50);
	fixture_close(&f);
}

#define BESIDE "gpu\nuuid GPU-aa\npower_mw constant 166000\nmodule_mw 467000\nmemory_mw 38000\n"

// Grace-Blackwell: the GPU has an energy counter, and the driver reports power of module and memory beside it.
static void scopes_beside_the_gpu(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, BESIDE "field_error 191 1 3\nfield_error 191 2 3\nfield_error 186 2 3\n");
	assert_int_equal(f.n, 3);
	assert_string_equal(f.domains[0].inside, "module-0");
	assert_string_equal(f.domains[1].name, "module-0");
	assert_int_equal(f.domains[1].kind, DOMAIN_MODULE);
	assert_string_equal(f.domains[1].uuid, "GPU-aa/module");
	assert_string_equal(f.domains[2].name, "gpu-0-memory");
	assert_int_equal(f.domains[2].kind, DOMAIN_GPU_MEMORY);
	assert_string_equal(f.domains[2].inside, "gpu-0");
	assert_false(domain_kind_adds_up(DOMAIN_MODULE) || domain_kind_adds_up(DOMAIN_GPU_MEMORY));
	for (size_t i = 0; i < 3; i++)
		assert_true(f.domains[i].used && f.domains[i].has_energy == (i == 0));
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 332000000);
	assert_int_equal(f.rows[0][DEVICE_POWER], 166000);
	assert_int_equal(f.rows[1][DEVICE_POWER], 467000);
	assert_int_equal(f.rows[2][DEVICE_POWER], 38000); // only the mean is available
	assert_true(f.rows[1][DEVICE_ENERGY_RAW] == MISSING && f.rows[2][DEVICE_ENERGY_RAW] == MISSING);
	fixture_close(&f);
}

static void scopes_that_count(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, BESIDE);
	assert_true(f.n == 3 && f.domains[1].has_energy && f.domains[2].has_energy);
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 332000000);
	assert_int_equal(f.rows[1][DEVICE_ENERGY_RAW], 934000000);
	assert_int_equal(f.rows[2][DEVICE_ENERGY_RAW], 76000000);
	fixture_close(&f);
}

// Calls of a complete reading and of a quick one, once all capabilities are known.
static void count_calls(const char *cards, unsigned long *ret_reading, unsigned long *ret_look)
{
	struct nvml_fixture f;
	const struct sensor_context look = {.main_pid = 100, .energy_only = true};
	fixture_open(&f, MODERN, cards);
	for (int64_t t_ms = 0; t_ms < 100; t_ms += 5)
		fixture_read_as(&f, t_ms, look);
	fixture_read(&f, 1000);
	unsigned long before = f.calls(NULL);
	fixture_read_as(&f, 2000, look);
	*ret_look = f.calls(NULL) - before;
	before = f.calls(NULL);
	fixture_read(&f, 3000);
	*ret_reading = f.calls(NULL) - before;
	fixture_close(&f);
}

static void scopes_cost_no_call(void **state)
{
	unsigned long reading, look, reading_beside, look_beside;
	count_calls("gpu\n", &reading, &look);
	count_calls(BESIDE, &reading_beside, &look_beside);
	assert_int_equal(reading_beside, reading);
	assert_int_equal(look_beside, look);
}

static void refused_scopes(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN,
		BESIDE "field_error 185 1 3\nfield_error 186 1 3\nfield_error 191 1 3\n"
		       "field_error 185 2 4\nfield_error 186 2 4\nfield_error 191 2 4\n");
	assert_int_equal(f.n, 2); // a scope that the driver does not support is no domain
	assert_string_equal(f.domains[0].inside, "");
	assert_string_equal(f.domains[1].name, "gpu-0-memory");
	assert_false(f.domains[1].readable || f.domains[1].used);
	assert_non_null(strstr(f.domains[1].why, "no permission"));
	assert_non_null(strstr(f.domains[1].remedy, "usermod"));
	fixture_read(&f, 2000);
	assert_true(f.rows[1][DEVICE_POWER] == MISSING && f.rows[1][DEVICE_ENERGY_RAW] == MISSING);
	fixture_close(&f);
}

static void scopes_that_are_none(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\npower_mw constant 166000\nmodule_mw 166000\nmemory_mw 0\nfield_error 191 2 3\n");
	assert_int_equal(f.n, 1); // a driver that ignores the scope, and one that reports 0 W
	assert_string_equal(f.domains[0].inside, "");
	fixture_close(&f);
}

static void refused_for_a_while(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, BESIDE);
	fixture_write(&f, BESIDE "field_error 185 1 999\nfield_error 186 1 999\nfield_error 191 1 999\n");
	fixture_read(&f, 1000);
	assert_true(f.rows[1][DEVICE_POWER] == MISSING && f.rows[1][DEVICE_ENERGY_RAW] == MISSING); // not 0
	assert_int_equal(f.rows[2][DEVICE_POWER], 38000);
	fixture_write(&f, BESIDE);
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[1][DEVICE_POWER], 467000);
	fixture_close(&f);
}

static const struct no_power {
	const char *teaches, *cards, *why;
} no_powers[] = {
	{"sensors: a GPU with only the module's power is unreadable", "module_mw 600000\n",
		"only for module-0"},
	{"sensors: a GPU without power readings is unreadable", "", "neither energy nor power"},
};

static void check_no_power(void **state)
{
	const struct no_power *row = *state;
	struct nvml_fixture f;
	char cards[400];
	snprintf(cards, sizeof(cards),
		"gpu\n%serror nvmlDeviceGetPowerUsage 3\nfield_error 186 0 3\nfield_error 185 0 3\n%s", row->cards,
		NO_COUNTER);
	fixture_init(&f, MODERN, cards);
	f.options.describe_only = true;
	assert_int_equal(fixture_try_open(&f), 0);
	assert_false(f.domains[0].readable || f.domains[0].used);
	assert_non_null(strstr(f.domains[0].why, row->why));
	assert_non_null(strstr(f.domains[0].remedy, "nvidia-smi -q -d POWER"));
	fixture_read(&f, 1000);
	assert_true(f.n == 1 || (f.domains[1].used && f.rows[1][DEVICE_POWER] == 600000));
	fixture_close(&f);
	fixture_open(&f, MODERN, cards); // a run still has its utilization and memory
	assert_true(f.domains[0].used);
	assert_non_null(strstr(f.domains[0].note, row->why));
	fixture_close(&f);
}

// Between two ticks: one call for each GPU.
static void a_look_is_cheap(void **state)
{
	struct nvml_fixture f;
	const struct sensor_context look = {.main_pid = 100, .energy_only = true};
	fixture_open(&f, MODERN, "gpu\nprocess 100 C 40 1\n");
	for (int64_t t_ms = 0; t_ms < 100;
		t_ms += 5) // until the field's timestamp is known to be the time of the query
		fixture_read_as(&f, t_ms, look);
	unsigned long before = f.calls(NULL);
	fixture_read_as(&f, 2000, look);
	assert_int_equal(f.calls(NULL), before + 1);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 200000000);
	assert_true(f.rows[0][DEVICE_POWER] == MISSING && f.rows[0][DEVICE_TEMPERATURE] == MISSING);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, source_rows, check_source);
	ROWS_ADD_ONE(&tests, "instantaneous power and the device's own average", instant_and_average);
	ROWS_ADD(&tests, value_rows, check_value);
	ROWS_ADD(&tests, stamp_rows, check_stamp);
	ROWS_ADD_ONE(&tests, "counter timestamps are converted to the monotonic clock", stamps_of_the_counter);
	ROWS_ADD_ONE(&tests, "timestamps of the query are not passed on", stamps_of_the_query);
	ROWS_ADD_ONE(&tests, "driver's buffer: contains samples between two ticks", buffer_sees_between_ticks);
	ROWS_ADD_ONE(&tests, "driver's buffer: its update period is reported", buffer_tells_its_period);
	ROWS_ADD_ONE(&tests, "driver's buffer without new samples, for a while and for good", buffer_without_news);
	ROWS_ADD(&tests, mean_rows, check_mean);
	ROWS_ADD_ONE(&tests, "no sample: no mean", mean_of_nothing);
	ROWS_ADD_ONE(&tests, "module power: not attributed to the GPU", module_scope);
	ROWS_ADD_ONE(&tests, "module and memory beside the GPU: power of each", scopes_beside_the_gpu);
	ROWS_ADD_ONE(&tests, "module and memory beside the GPU: energy of each", scopes_that_count);
	ROWS_ADD_ONE(&tests, "module and memory beside the GPU: no additional driver call", scopes_cost_no_call);
	ROWS_ADD_ONE(&tests, "refused scope: no domain, or unreadable with the reason", refused_scopes);
	ROWS_ADD_ONE(&tests, "scope that repeats the GPU's power or reports 0 W: no domain", scopes_that_are_none);
	ROWS_ADD_ONE(&tests, "scope refused for a while: missing, not 0", refused_for_a_while);
	ROWS_ADD(&tests, no_powers, check_no_power);
	ROWS_ADD_ONE(&tests, "reading between two ticks: one call", a_look_is_cheap);
	return rows_run(&tests, "nvml_energy");
}
