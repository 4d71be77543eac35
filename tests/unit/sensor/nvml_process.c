#include "sensor/gpu/nvml.h"

#include "base/util.h"
#include "rows.h"

static const pid_t target_pids[] = {10, 20, 30};
static const struct sensor_context context = {.main_pid = 10,
	.target_pids = target_pids,
	.n_target_pids = ARRAY_SIZE(target_pids)};

// The matcher of a machine whose pids equal the driver's.
static void open_match(struct pid_match *match, struct wattle_env *env)
{
	*env = (struct wattle_env){.sysfs_fd = -1, .procfs_fd = -1};
	assert_int_equal(pid_match_open(match, env), 0);
	pid_match_update(match, &context);
}

static void sum(struct nvml_process_set *set, int64_t *row)
{
	struct wattle_env env;
	struct pid_match match;
	struct nvml_owners owners;
	open_match(&match, &env);
	nvml_process_set_check(set, &match, 0, &owners);
	nvml_process_set_sum(set, &owners, true, row);
	pid_match_close(&match);
}

/* Samples of one answer. The last sample seen before was at 1000 us unless the row states otherwise. */
static const struct sm_row {
	const char *teaches;
	uint64_t seen_us;
	struct nvml_process_sample samples[6];
	size_t n;
	double target_percent, others_percent;
	uint64_t newest_us;
} sm_rows[] = {
	{"no sample: nothing is busy", 1000, {{0}}, 0, 0, 0, 1000},
	{"one sample: its value is the mean", 1000, {{10, 2000, 40}}, 1, 40, 0, 2000},
	{"several processes: values are added", 1000, {{10, 2000, 40}, {20, 2000, 30}, {99, 2000, 5}}, 3, 70, 5, 2000},
	{"two samples of one process: averaged", 1000, {{10, 2000, 40}, {10, 3000, 80}}, 2, 60, 0, 3000},
	{"two samples: weighted by the time of each", 1000, {{10, 2000, 40}, {10, 5000, 80}}, 2, 70, 0, 5000},
	{"samples in any order: same result", 1000, {{10, 5000, 80}, {99, 5000, 1}, {10, 2000, 40}}, 3, 70, 1, 5000},
	{"two samples at the same time: equal weight", 1000, {{10, 2000, 40}, {10, 2000, 80}}, 2, 60, 0, 2000},
	{"first query, one sample", 0, {{10, 2000, 40}}, 1, 40, 0, 2000},
	{"first query: the first sample has the weight of the second", 0, {{10, 2000, 40}, {10, 2500, 80}}, 2, 60, 0,
		2500},
	{"pid 0: ignored", 1000, {{0, 2000, 40}, {10, 2000, 7}}, 2, 7, 0, 2000},
	{"more than 100 percent: ignored", 1000, {{10, 2000, 2147483632}, {20, 2000, 7}}, 2, 7, 0, 2000},
	{"old sample: ignored", 1000, {{10, 1000, 40}, {20, 999, 7}}, 2, 0, 0, 1000},
	{"ignored samples do not set the time", 1000, {{0, 9000, 40}, {10, 2000, 7}}, 2, 7, 0, 2000},
	{"100 percent: valid", 1000, {{10, 2000, 100}}, 1, 100, 0, 2000},
};

static void check_sm(void **state)
{
	const struct sm_row *row = *state;
	struct nvml_process_sample samples[ARRAY_SIZE(row->samples)];
	struct nvml_sm_use use;
	struct wattle_env env;
	struct pid_match match;
	open_match(&match, &env);
	memcpy(samples, row->samples, sizeof(samples));
	uint64_t newest_us = nvml_sm_sum(samples, row->n, row->seen_us, &match, &use);
	assert_int_equal(newest_us, row->newest_us);
	assert_true(fabs(use.percent[PID_TARGET] - row->target_percent) < 1e-9);
	assert_true(fabs(use.percent[PID_OTHER] - row->others_percent) < 1e-9);
	pid_match_close(&match);
}

// Thousands of samples in a bad order still give one mean per process.
static void many_samples(void **state)
{
	enum { N = 4096 };
	static struct nvml_process_sample samples[N];
	struct nvml_sm_use use;
	struct wattle_env env;
	struct pid_match match;
	open_match(&match, &env);
	for (uint32_t i = 0; i < N; i++)
		samples[i] = (struct nvml_process_sample){
			.pid = 10 + i % 4, // 10, and three processes outside the target
			.timestamp_us = 1000 + 10 * (uint64_t)(N - i),
			.sm_percent = 25,
		};
	uint64_t newest_us = nvml_sm_sum(samples, N, 1000, &match, &use);
	pid_match_close(&match);
	assert_int_equal(newest_us, 1000 + 10 * N);
	assert_true(fabs(use.percent[PID_TARGET] - 25) < 1e-9);
	assert_true(fabs(use.percent[PID_OTHER] - 75) < 1e-9);
}

static struct nvml_process buffer[4];

// A process may use two MIG instances of one GPU: memory on both, but one process.
static void instances_add_up(void **state)
{
	const struct nvml_process_v2 records[] = {{20, 100, 1, 0}, {20, 200, 2, 0}, {7, 50, 1, 0}};
	struct nvml_process_set set = {.processes = buffer, .capacity = ARRAY_SIZE(buffer)};
	int64_t row[DEVICE_COUNT];
	assert_true(nvml_process_set_add(&set, records, sizeof(records[0]), ARRAY_SIZE(records), NVML_NO_INSTANCE));
	assert_true(nvml_process_set_add(&set, records, sizeof(records[0]), 1,
		NVML_NO_INSTANCE)); // again, from another list
	sum(&set, row);
	assert_int_equal(row[DEVICE_TARGET_MEMORY], 300);
	assert_int_equal(row[DEVICE_TARGET_PROCESSES], 1);
	assert_int_equal(row[DEVICE_OTHERS_MEMORY], 50);
}

static void one_list_knows_the_memory(void **state)
{
	const struct nvml_process_v1 compute = {10, NVML_NOT_AVAILABLE}, graphics = {10, 70};
	struct nvml_process_set set = {.processes = buffer, .capacity = ARRAY_SIZE(buffer)};
	int64_t row[DEVICE_COUNT];
	nvml_process_set_add(&set, &compute, sizeof(compute), 1, NVML_NO_INSTANCE);
	nvml_process_set_add(&set, &graphics, sizeof(graphics), 1, NVML_NO_INSTANCE);
	sum(&set, row);
	assert_int_equal(row[DEVICE_MAIN_MEMORY], 70);
	assert_int_equal(row[DEVICE_TARGET_MEMORY], 70);
}

static void no_more_room(void **state)
{
	const struct nvml_process_v1 records[] = {{5, 1}, {4, 1}, {3, 1}, {2, 1}, {1, 1}};
	struct nvml_process_set set = {.processes = buffer, .capacity = ARRAY_SIZE(buffer)};
	assert_false(nvml_process_set_add(&set, records, sizeof(records[0]), ARRAY_SIZE(records), NVML_NO_INSTANCE));
	assert_int_equal(set.n, ARRAY_SIZE(buffer));
	assert_int_equal(buffer[0].pid, 2);
}

// Invalid memory sizes must not overflow a sum.
static void sums_do_not_overflow(void **state)
{
	const struct nvml_process_v1 records[] = {{10, INT64_MAX}, {20, INT64_MAX}, {7, UINT64_MAX - 1}};
	struct nvml_process_set set = {.processes = buffer, .capacity = ARRAY_SIZE(buffer)};
	int64_t row[DEVICE_COUNT];
	nvml_process_set_add(&set, records, sizeof(records[0]), ARRAY_SIZE(records), NVML_NO_INSTANCE);
	sum(&set, row);
	assert_true(row[DEVICE_MAIN_MEMORY] == INT64_MAX);
	assert_true(row[DEVICE_TARGET_MEMORY] == VALUE_MISSING);
	assert_true(row[DEVICE_OTHERS_MEMORY] == VALUE_MISSING);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, sm_rows, check_sm);
	ROWS_ADD_ONE(&tests, "thousands of samples in a bad order: one mean for each process", many_samples);
	ROWS_ADD_ONE(&tests, "MIG instances of one process: added", instances_add_up);
	ROWS_ADD_ONE(&tests, "process in two lists: the known memory is used", one_list_knows_the_memory);
	ROWS_ADD_ONE(&tests, "full set: reported", no_more_room);
	ROWS_ADD_ONE(&tests, "sums: no overflow", sums_do_not_overflow);
	return rows_run(&tests, "nvml_process");
}
