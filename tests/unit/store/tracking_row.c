/* The 22 columns of gpu_tracker's tracking file, derived from wattle's samples. */
#include "store/tracking.h"

#include "rows.h"

#include "base/util.h"

static const struct tracking_metadata facts = {
	.ram_unit = "megabytes",
	.gpu_ram_unit = "gigabytes",
	.time_unit = "hours",
	.system_core_count = 8,
	.n_expected_cores = 4,
	.system_gpu_count = 2,
	.n_expected_gpus = 2,
};

#define UNKNOWN ((double)NAN)
#define M(megabytes) ((int64_t)(megabytes)*1000000)
#define NO VALUE_MISSING

static void assert_number(double actual, double expected)
{
	if (isnan(expected) || isnan(actual))
		assert_true(isnan(expected) && isnan(actual));
	else
		assert_true(fabs(actual - expected) <= 1e-12 * fabs(expected));
}

static void start(struct tracking_rows *rows, const struct tracking_metadata *with)
{
	tracking_rows_init(rows, with);
	tracking_rows_start(rows, 1000 * NS_PER_S, 1700000000 * NS_PER_S);
}

// A sample while the target runs; true if it completes a row.
static bool next(struct tracking_rows *rows, int64_t t_ns, const int64_t *values, const struct tracking_gpus *gpus,
	struct tracking_row *ret_row)
{
	tracking_rows_feed(rows, t_ns, values, gpus, true);
	return tracking_rows_take(rows, ret_row);
}

static bool last(struct tracking_rows *rows, struct tracking_row *ret_row)
{
	tracking_rows_end(rows);
	return tracking_rows_take(rows, ret_row);
}

static void clear(int64_t *values)
{
	for (size_t i = 0; i < RUN_COUNT; i++)
		values[i] = VALUE_MISSING;
}

/* Memory: readings of two samples and the second row. MB throughout. */
static const struct memory {
	const char *teaches;
	struct {
		int64_t main_private, main_shared, descendants_private, descendants_shared, combined_shared, main_rss,
			descendants_rss;
	} first, second;
	double main, descendants, combined;
} memories[] = {
	{"private and shared memory are added; shared paths count once for all processes",
		{M(9), M(9), M(9), M(9), M(9), M(100), M(100)}, {M(10), M(5), M(20), M(6), M(7), M(100), M(100)}, 15,
		26, 37},
	{"between two readings of smaps: the last one is kept", {M(10), M(5), M(20), M(6), M(7), M(100), M(100)},
		{NO, NO, NO, NO, NO, M(100), M(100)}, 15, 26, 37},
	{"memory allocated since the reading: counted as private, so growth is not missed",
		{M(10), M(5), M(20), M(6), M(7), M(100), M(100)}, {NO, NO, NO, NO, NO, M(150), M(100)}, 65, 26, 87},
	{"memory freed since the reading: subtracted, private memory first",
		{M(10), M(5), M(20), M(6), M(7), M(100), M(100)}, {NO, NO, NO, NO, NO, M(97), M(0)}, 12, 0, 12},
	{"combined memory: at most resident memory", {M(10), M(5), M(20), M(6), M(7), NO, NO},
		{NO, NO, NO, NO, NO, M(12), M(0)}, 12, 0, 12},
	{"smaps never read: resident memory is used", {NO, NO, NO, NO, NO, M(1), M(1)},
		{NO, NO, NO, NO, NO, M(30), M(40)}, 30, 40, 70},
	{"resident memory unknown: the reading alone is used", {NO, NO, NO, NO, NO, NO, NO},
		{M(10), M(5), M(20), M(6), M(7), NO, NO}, 15, 26, 37},
	{"unknown stays unknown", {NO, NO, NO, NO, NO, NO, NO}, {NO, NO, NO, NO, NO, NO, M(3)}, UNKNOWN, 3, UNKNOWN},
};

static void put_memory(int64_t *values, const int64_t *m)
{
	clear(values);
	static const enum run_metric order[] = {RUN_MAIN_PRIVATE, RUN_MAIN_SHARED, RUN_DESCENDANTS_PRIVATE,
		RUN_DESCENDANTS_SHARED, RUN_COMBINED_SHARED, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS};
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		values[order[i]] = m[i];
}

static void check_memory(void **state)
{
	const struct memory *row = *state;
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_memory(values, &row->first.main_private);
	assert_false(next(&rows, 1000 * NS_PER_S, values, &gpus, &out));
	put_memory(values, &row->second.main_private);
	assert_true(next(&rows, 1001 * NS_PER_S, values, &gpus, &out));
	assert_number(out.values[TRACKING_MAIN_RAM], row->main);
	assert_number(out.values[TRACKING_DESCENDANTS_RAM], row->descendants);
	assert_number(out.values[TRACKING_COMBINED_RAM], row->combined);
	assert_number(out.values[TRACKING_SYSTEM_RAM], UNKNOWN);
}

/* CPU: counters of two samples half a second apart, in ms, and the percentages of the second row. */
static const struct cpu {
	const char *teaches;
	int64_t first[4], second[4]; // main, descendants, busy, idle
	double main, descendants, combined, system;
} cpus[] = {
	{"half a core, one and a half cores, three of eight cores", {100, 200, 5000, 9000}, {350, 950, 6500, 11500}, 50,
		150, 200, 300},
	{"no CPU time: 0, not unknown", {100, 200, 5000, 9000}, {100, 200, 5000, 13000}, 0, 0, 0, 0},
	{"one part unknown: the sum is unknown", {100, NO, 5000, NO}, {350, NO, 6500, NO}, 50, UNKNOWN, UNKNOWN,
		UNKNOWN},
	{"counter decreased: no percentage", {100, 200, 5000, 9000}, {50, 950, 6500, 11500}, UNKNOWN, 150,
		UNKNOWN, 300},
};

static void put_cpu(int64_t *values, const int64_t *ms)
{
	static const enum run_metric order[] = {RUN_MAIN_CPU, RUN_DESCENDANTS_CPU, RUN_SYSTEM_BUSY, RUN_SYSTEM_IDLE};
	clear(values);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		values[order[i]] = value_ok(ms[i]) ? ms[i] * NS_PER_MS : NO;
}

static void check_cpu(void **state)
{
	const struct cpu *row = *state;
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_cpu(values, row->first);
	assert_false(next(&rows, 1000 * NS_PER_S, values, &gpus, &out));
	put_cpu(values, row->second);
	assert_true(next(&rows, 1000 * NS_PER_S + 500 * NS_PER_MS, values, &gpus, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], row->main);
	assert_number(out.values[TRACKING_MAIN_HARDWARE], row->main / 4); // of the expected cores
	assert_number(out.values[TRACKING_DESCENDANTS_SUM], row->descendants);
	assert_number(out.values[TRACKING_COMBINED_SUM], row->combined);
	assert_number(out.values[TRACKING_COMBINED_HARDWARE], row->combined / 4);
	assert_number(out.values[TRACKING_SYSTEM_SUM], row->system);
	assert_number(out.values[TRACKING_SYSTEM_HARDWARE], row->system / 8); // of all cores
	assert_number(out.values[TRACKING_TIMESTAMP], 1700000000.5);
}

static void differences_reach_back_to_the_last_known_value(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_cpu(values, (const int64_t[]){0, 0, 0, 0});
	next(&rows, 1000 * NS_PER_S, values, &gpus, &out);
	put_cpu(values, (const int64_t[]){NO, 0, 100, 100});
	assert_false(next(&rows, 1001 * NS_PER_S, values, &gpus, &out)); // the row waits for the first difference
	put_cpu(values, (const int64_t[]){1000, 0, 200, 200});
	assert_true(next(&rows, 1002 * NS_PER_S, values, &gpus, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], 50); // 1 s of CPU in 2 s
	assert_true(tracking_rows_take(&rows, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], 50);
	put_cpu(values, (const int64_t[]){NO, 0, 300, 300});
	assert_true(next(&rows, 1003 * NS_PER_S, values, &gpus, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], UNKNOWN);
	put_cpu(values, (const int64_t[]){1500, 0, 400, 400});
	assert_true(next(&rows, 1004 * NS_PER_S, values, &gpus, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], 25); // 0.5 s of CPU in 2 s
}

static void samples_within_a_tick_of_the_kernel(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_cpu(values, (const int64_t[]){NO, NO, 100, 100});
	next(&rows, 1000 * NS_PER_S, values, &gpus, &out);
	put_cpu(values, (const int64_t[]){NO, NO, 110, 130});
	assert_true(next(&rows, 1000 * NS_PER_S + 10 * NS_PER_MS, values, &gpus, &out));
	assert_number(out.values[TRACKING_SYSTEM_HARDWARE], 25);
	assert_true(next(&rows, 1000 * NS_PER_S + 11 * NS_PER_MS, values, &gpus, &out));
	assert_number(out.values[TRACKING_SYSTEM_HARDWARE], 25); // no new count: neither 0 nor unknown
}

/* A recording begins at 1000 s; samples are `step_ms` apart; the machine's counters change in the kernel's ticks of
 * 10 ms, the first after `tick_ms`. One core is busy with the target, another one is idle. */
static const struct beginning {
	const char *teaches;
	int64_t step_ms, tick_ms;
	size_t n; // samples
} beginnings[] = {
	{"every 1 ms: rows wait for the first percentages", 1, 9, 200},
	{"every 10 ms: rows wait for the first percentages", 10, 4, 20},
	{"every 25 ms: the first row waits for a difference of 50 ms", 25, 1, 9},
	{"second sample before the machine's counters change: its row waits", 60, 70, 6},
	{"recording of 30 ms: rows have its means", 10, 1, 4},
};

static int64_t ticks_ms(int64_t since_ms, int64_t tick_ms)
{
	return since_ms < tick_ms ? 0 : (since_ms - tick_ms) / 10 * 10 + 10;
}

static void check_beginning(void **state)
{
	const struct beginning *row = *state;
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	size_t n_rows = 0;
	start(&rows, &facts);
	for (size_t i = 0; i <= row->n; i++) {
		int64_t since_ms = (int64_t)i * row->step_ms, ticks = ticks_ms(since_ms, row->tick_ms);
		put_cpu(values, (const int64_t[]){since_ms, 0, 5000 + ticks, 9000 + ticks});
		if (i < row->n && (row->step_ms >= 10 || since_ms % 10 == 0)) // /proc is read every 10 ms at most
			tracking_rows_feed(&rows, 1000 * NS_PER_S + since_ms * NS_PER_MS, values, &gpus, true);
		if (i == row->n)
			tracking_rows_end(&rows);
		for (; tracking_rows_take(&rows, &out); n_rows++) {
			assert_number(out.values[TRACKING_MAIN_SUM], 100);
			assert_number(out.values[TRACKING_DESCENDANTS_SUM], 0);
			assert_number(out.values[TRACKING_SYSTEM_HARDWARE], 50);
		}
	}
	assert_int_equal(n_rows, row->step_ms < 10 ? row->n / 10 - 1 : row->n - 1);
}

static void counters_that_stand_still(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	size_t n_rows = 0;
	start(&rows, &facts);
	for (int64_t i = 0; i < 40; i++) {
		put_cpu(values, (const int64_t[]){i, 0, 5000, 9000}); // /proc/stat never changes
		for (bool is = next(&rows, (1000 + i) * NS_PER_S, values, &gpus, &out); is;
			is = tracking_rows_take(&rows, &out)) {
			assert_number(out.values[TRACKING_SYSTEM_SUM], UNKNOWN);
			n_rows++;
		}
	}
	assert_int_equal(n_rows, 39 - (TRACKING_HELD_MAX - 1));
	for (tracking_rows_end(&rows); tracking_rows_take(&rows, &out); n_rows++)
		assert_number(out.values[TRACKING_SYSTEM_SUM], UNKNOWN);
	assert_int_equal(n_rows, 39);
}

static void samples_without_the_target(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_cpu(values, (const int64_t[]){0, 0, 100, 100});
	tracking_rows_feed(&rows, 1000 * NS_PER_S, values, &gpus, false);
	tracking_rows_feed(&rows, 1000 * NS_PER_S + NS_PER_MS, values, &gpus, true);
	assert_false(tracking_rows_take(&rows, &out));
	put_cpu(values, (const int64_t[]){3, 0, 110, 100});
	tracking_rows_feed(&rows, 1000 * NS_PER_S + 6 * NS_PER_MS, values, &gpus, false);
	assert_false(tracking_rows_take(&rows, &out));
	assert_true(last(&rows, &out));
	assert_number(out.values[TRACKING_TIMESTAMP], 1700000000.001);
	assert_number(out.values[TRACKING_MAIN_SUM], 50); // 3 ms of 6
	assert_number(out.values[TRACKING_SYSTEM_HARDWARE], 100);
	assert_false(tracking_rows_take(&rows, &out));
}

static void a_single_sample_shows_the_mean_since_the_start(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	put_cpu(values, (const int64_t[]){10, 20, 5000, 9000});
	assert_false(next(&rows, 1000 * NS_PER_S + 40 * NS_PER_MS, values, &gpus, &out));
	assert_true(last(&rows, &out));
	assert_number(out.values[TRACKING_MAIN_SUM], 25);
	assert_number(out.values[TRACKING_COMBINED_SUM], 75);
	assert_number(out.values[TRACKING_SYSTEM_SUM], UNKNOWN); // the machine's counters began long before
	assert_false(last(&rows, &out));
}

static void two_samples_give_one_row(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus gpus = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	start(&rows, &facts);
	clear(values);
	assert_false(next(&rows, 1000 * NS_PER_S, values, &gpus, &out));
	assert_true(next(&rows, 1001 * NS_PER_S, values, &gpus, &out));
	assert_false(last(&rows, &out));
}

/* GPUs: readings of the measured ones, in GB and percent. */
static const struct gpu {
	const char *teaches;
	int64_t in_system, expected;
	size_t n;
	struct {
		int64_t main, target, used, utilization;
	} devices[2];
	double main, descendants, combined, system, sum, hardware;
} gpus[] = {
	{"two GPUs are summed; hardware is per GPU", 2, 2, 2, {{1, 3, 10, 50}, {2, 2, 20, 100}}, 3, 2, 5, 30, 150, 75},
	{"one GPU without a value: that column's sum is unknown", 2, 2, 2, {{NO, 3, 10, 50}, {2, 2, 20, 100}},
		UNKNOWN, UNKNOWN, 5, 30, 150, 75},
	{"one GPU not read at all: all sums are unknown", 2, 2, 1, {{1, 3, 10, 50}}, UNKNOWN, UNKNOWN, UNKNOWN,
		UNKNOWN, UNKNOWN, UNKNOWN},
	{"no GPU in the machine: 0, as gpu_tracker writes", 0, 0, 0, {{0}}, 0, 0, 0, 0, 0, 0},
	{"GPU that is not measured: unknown", 1, 0, 0, {{0}}, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN},
	{"unknown number of GPUs: unknown", NO, 0, 0, {{0}}, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN},
};

static int64_t giga(int64_t value)
{
	return value_ok(value) ? value * 1000000000 : NO;
}

static void check_gpu(void **state)
{
	const struct gpu *row = *state;
	struct tracking_metadata with = facts;
	with.system_gpu_count = row->in_system;
	with.n_expected_gpus = row->expected;
	struct tracking_gpus sum = {0};
	for (size_t i = 0; i < row->n; i++) {
		int64_t values[DEVICE_COUNT];
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			values[m] = NO;
		values[DEVICE_MAIN_MEMORY] = giga(row->devices[i].main);
		values[DEVICE_TARGET_MEMORY] = giga(row->devices[i].target);
		values[DEVICE_MEMORY_USED] = giga(row->devices[i].used);
		values[DEVICE_UTILIZATION] = row->devices[i].utilization;
		tracking_gpus_add(&sum, values);
	}
	struct tracking_rows rows;
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	clear(values);
	start(&rows, &with);
	next(&rows, 1000 * NS_PER_S, values, &sum, &out);
	assert_true(last(&rows, &out));
	assert_number(out.values[TRACKING_MAIN_GPU_RAM], row->main);
	assert_number(out.values[TRACKING_DESCENDANTS_GPU_RAM], row->descendants);
	assert_number(out.values[TRACKING_COMBINED_GPU_RAM], row->combined);
	assert_number(out.values[TRACKING_SYSTEM_GPU_RAM], row->system);
	assert_number(out.values[TRACKING_GPU_SUM], row->sum);
	assert_number(out.values[TRACKING_GPU_HARDWARE], row->hardware);
}

static void threads_add_up(void **state)
{
	struct tracking_rows rows;
	struct tracking_gpus none = {0};
	struct tracking_row out;
	int64_t values[RUN_COUNT];
	clear(values);
	values[RUN_MAIN_THREADS] = 3;
	start(&rows, &facts);
	next(&rows, 1000 * NS_PER_S, values, &none, &out);
	values[RUN_DESCENDANTS_THREADS] = 4;
	struct tracking_row second;
	assert_true(next(&rows, 1001 * NS_PER_S, values, &none, &second));
	assert_number(second.values[TRACKING_MAIN_THREADS], 3);
	assert_number(second.values[TRACKING_COMBINED_THREADS], 7);
	values[RUN_DESCENDANTS_THREADS] = NO;
	assert_true(next(&rows, 1002 * NS_PER_S, values, &none, &second));
	assert_number(second.values[TRACKING_COMBINED_THREADS], UNKNOWN);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, memories, check_memory);
	ROWS_ADD(&rows, cpus, check_cpu);
	ROWS_ADD(&rows, gpus, check_gpu);
	ROWS_ADD(&rows, beginnings, check_beginning);
	ROWS_ADD_ONE(&rows, "machine whose counters never change: rows do not wait forever",
		counters_that_stand_still);
	ROWS_ADD_ONE(&rows, "samples before the start and after the end of the target: complete its row",
		samples_without_the_target);
	ROWS_ADD_ONE(&rows, "difference: reaches back to the last known value",
		differences_reach_back_to_the_last_known_value);
	ROWS_ADD_ONE(&rows, "between two ticks of the kernel: the last share is kept",
		samples_within_a_tick_of_the_kernel);
	ROWS_ADD_ONE(&rows, "single sample: the mean since the start",
		a_single_sample_shows_the_mean_since_the_start);
	ROWS_ADD_ONE(&rows, "two samples: one row", two_samples_give_one_row);
	ROWS_ADD_ONE(&rows, "threads: added if both are known", threads_add_up);
	return rows_run(&rows, "tracking rows");
}
