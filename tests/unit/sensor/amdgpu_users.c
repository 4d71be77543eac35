#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"

#define NONE VALUE_MISSING

static const struct row {
	const char *teaches;
	struct device_user drawing[3];
	size_t n_drawing;
	struct kfd_process computing[3];
	size_t n_computing;
	int64_t busy_percent;
	struct device_user expected[4];
	size_t n_expected;
} rows[] = {
	// clang-format off
	{"nobody", {{0}}, 0, {{0}}, 0, 0, {{0}}, 0},
	{"one process renders", {{10, 30, 100, NAN}}, 1, {{0}}, 0, 30, {{10, 30, 100, NAN}}, 1},
	{"single compute process: gets the GPU's utilization", {{0}}, 0, {{10, 500, NONE}}, 1, 90, {{10, 90, 500, NAN}}, 1},
	{"two compute processes: divided by their compute units", {{0}}, 0, {{10, 500, 30}, {20, 100, 10}}, 2, 80,
		{{10, 60, 500, NAN}, {20, 20, 100, NAN}}, 2},
	{"two compute processes without compute units: unknown", {{0}}, 0, {{10, 500, NONE}, {20, 100, NONE}}, 2, 80,
		{{10, NAN, 500, NAN}, {20, NAN, 100, NAN}}, 2},
	{"render time does not count as compute time", {{30, 20, 7, NAN}}, 1, {{10, 500, NONE}}, 1, 90,
		{{30, 20, 7, NAN}, {10, 70, 500, NAN}}, 2},
	{"process in both lists: listed once, with KFD's memory", {{10, 1, 480, NAN}}, 1, {{10, 500, NONE}}, 1, 90,
		{{10, 90, 500, NAN}}, 1},
	{"use of no listed process: an invisible user's", {{10, 30, 100, NAN}}, 1, {{0}}, 0, 90,
		{{10, 30, 100, NAN}, {0, 60, NONE, NAN}}, 2},
	{"a GPU that does not report how busy it is", {{30, 20, 7, NAN}}, 1, {{10, 500, NONE}}, 1, NONE,
		{{30, 20, 7, NAN}, {10, NAN, 500, NAN}}, 2},
	// clang-format on
};

static void check(void **state)
{
	const struct row *row = *state;
	struct device_user users[4];
	memcpy(users, row->drawing, sizeof(row->drawing));
	size_t n = amdgpu_users_merge(users, row->n_drawing, ARRAY_SIZE(users), row->computing, row->n_computing,
		row->busy_percent);
	assert_int_equal(n, row->n_expected);
	for (size_t i = 0; i < n; i++) {
		const struct device_user *expected = &row->expected[i];
		assert_int_equal(users[i].pid, expected->pid);
		assert_true(users[i].memory_bytes == expected->memory_bytes);
		if (isnan(expected->busy_percent) ? !isnan(users[i].busy_percent)
						  : !(fabs(users[i].busy_percent - expected->busy_percent) < 1e-9))
			fail_msg("%g %% is not %g %%", users[i].busy_percent, expected->busy_percent);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "amdgpu_users");
}
