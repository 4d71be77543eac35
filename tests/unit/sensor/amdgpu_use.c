#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"

#define MISSING VALUE_MISSING

enum { MIB = 1 << 20 };

// Of the whole GPU: 60 percent busy, 1000 MiB used.
static const struct row {
	const char *teaches;
	bool has_target;
	struct drm_use drm;
	struct kfd_use kfd;
	bool has_kfd;
	int64_t target_percent, others_percent, target_mib, others_mib, target_processes, others_processes;
} rows[] = {
	{"graphics only: the rest belongs to others", true, {true, 1, 25, 300 * MIB, 300 * MIB}, {0}, false, 25, 35,
		300, 700, 1, MISSING},
	{"target without a descriptor: 0", true, {true, 0, 0, 0, 0}, {0}, false, 0, 60, 0, 1000, 0, MISSING},
	{"more than 100 percent from readings at different times: limited", true, {true, 1, 107, 0, 0}, {0}, false, 100,
		0, 0, 1000, 1, MISSING},
	{"old kernel without engine times: unknown", true, {true, 1, NAN, 300 * MIB, 0}, {0}, false, MISSING, MISSING,
		300, 700, 1, MISSING},
	{"nothing visible: unknown", true, {false}, {0}, false, MISSING, MISSING, MISSING, MISSING, MISSING, MISSING},
	{"single compute process: gets the GPU's utilization", true, {true, 1, 0, 5 * MIB, 0},
		{.target_bytes = 800 * MIB, .target_processes = 1}, true, 60, 0, 800, 0, 1, 0},
	{"two compute processes: divided by compute units in use", true, {true, 1, 0, 0, 0},
		{.target_bytes = 300 * MIB,
			.others_bytes = 500 * MIB,
			.target_processes = 1,
			.others_processes = 2,
			.target_units = 100,
			.others_units = 200},
		true, 20, 40, 300, 500, 1, 2},
	{"two compute processes without compute units: only memory differs", true, {true, 1, 0, 0, 0},
		{.target_bytes = 300 * MIB,
			.others_bytes = 500 * MIB,
			.target_processes = 1,
			.others_processes = 2,
			.target_units = MISSING,
			.others_units = MISSING},
		true, MISSING, MISSING, 300, 500, 1, 2},
	{"others compute, the target renders", true, {true, 1, 10, 50 * MIB, 0},
		{.others_bytes = 500 * MIB, .others_processes = 1}, true, 10, 50, 50, 500, 1, 1},
	{"owner of a process unknown: as without KFD", true, {true, 0, 0, 0, 0},
		{.others_bytes = 500 * MIB, .others_processes = 1, .unknown_processes = 1}, true, 0, 60, 0, 1000, 0,
		MISSING},
	{"no target: all use belongs to others", false, {false}, {0}, false, MISSING, 60, MISSING, 1000, MISSING,
		MISSING},
};

static int64_t in_mib(int64_t bytes)
{
	return value_ok(bytes) ? bytes / MIB : bytes;
}

static void check(void **state)
{
	const struct row *row = *state;
	static const pid_t target[] = {100};
	const struct sensor_context context = {.target_pids = target, .n_target_pids = row->has_target ? 1 : 0};
	int64_t values[DEVICE_COUNT];
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		values[m] = VALUE_MISSING;
	values[DEVICE_UTILIZATION] = 60;
	values[DEVICE_MEMORY_USED] = INT64_C(1000) * MIB;
	amdgpu_use_fill(&row->drm, row->has_kfd ? &row->kfd : NULL, &context, values);
	assert_int_equal(values[DEVICE_TARGET_UTILIZATION], row->target_percent);
	assert_int_equal(values[DEVICE_OTHERS_UTILIZATION], row->others_percent);
	assert_int_equal(in_mib(values[DEVICE_TARGET_MEMORY]), row->target_mib);
	assert_int_equal(in_mib(values[DEVICE_OTHERS_MEMORY]), row->others_mib);
	assert_int_equal(values[DEVICE_TARGET_PROCESSES], row->target_processes);
	assert_int_equal(values[DEVICE_OTHERS_PROCESSES], row->others_processes);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "amdgpu_use");
}
