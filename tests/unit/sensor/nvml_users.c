#include "nvml_fixture.h"

#include "sensor/gpu/pid_match.h"

// Result of users() for the first GPU after a second.
static void read_users(struct nvml_fixture *f, const char *cards)
{
	fixture_init(f, MODERN, cards);
	f->options.list_users = true;
	assert_int_equal(fixture_try_open(f), 0);
	fixture_read_as(f, 0, (struct sensor_context){0});
	fixture_read_as(f, 1000, (struct sensor_context){0});
}

static const struct row {
	const char *teaches, *cards;
	struct device_user expected[4];
	size_t n; // 99: unknown
} rows[] = {
	// clang-format off
	{"nobody", "gpu\n", {{0}}, 0},
	{"each user with SM time and memory", "gpu\nprocess 100 C 60 1000\nprocess 200 C 20 500\n",
		{{100, 60, 1000, NAN}, {200, 20, 500, NAN}}, 2},
	{"process that computes and renders: listed once", "gpu\nprocess 100 CG 60 1000\n", {{100, 60, 1000, NAN}}, 1},
	{"idle process: 0 % where others have samples", "gpu\nprocess 100 C 60 1000\nprocess 200 C 0 500\n",
		{{100, 60, 1000, NAN}, {200, 0, 500, NAN}}, 2},
	{"memory not reported: unknown", "gpu\nprocess 100 C 60 unknown\n", {{100, 60, VALUE_MISSING, NAN}}, 1},
	{"no samples: SM time unknown, not 0", "gpu\nprocess 100 C 60 1000\nerror nvmlDeviceGetProcessUtilization 3\n",
		{{100, NAN, 1000, NAN}}, 1},
	{"no list: users unknown", "gpu\nprocess 100 C 60 1000\nerror nvmlDeviceGetComputeRunningProcesses 3\n", {{0}}, 99},
	{"MIG: the instance's share of the GPU",
		"gpu\nmig MIG-a 1 0 3 42 20000000000\nmig MIG-b 2 0 2 28 10000000000\nmig_process 0 100 C 50 1000\n"
		"mig_process 1 200 C 50 300\nmig_process 1 300 C 50 100\n",
		{{100, NAN, 1000, 300 / 7.0}, {200, NAN, 300, 200 / 7.0 * 0.75}, {300, NAN, 100, 200 / 7.0 * 0.25}}, 3},
	// clang-format on
};

static void assert_percent(double value, double expected)
{
	if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) < 0.01))
		fail_msg("%g %% is not %g %%", value, expected);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct nvml_fixture f;
	read_users(&f, row->cards);
	size_t n = 99;
	const struct device_user *users = sensor_nvml.users(f.state, 0, &n);
	assert_int_equal(users != NULL ? n : 99, row->n);
	for (size_t i = 0; users != NULL && i < n; i++) {
		assert_int_equal(users[i].pid, row->expected[i].pid);
		assert_true(users[i].memory_bytes == row->expected[i].memory_bytes);
		if (!isnan(row->expected[i].instance_percent)) // some drivers report SM time of instances, some do not
			assert_percent(users[i].instance_percent, row->expected[i].instance_percent);
		else
			assert_percent(users[i].busy_percent, row->expected[i].busy_percent);
	}
	fixture_close(&f);
}

static void nobody_asked(void **state)
{
	struct nvml_fixture f;
	size_t n;
	fixture_open(&f, MODERN, "gpu\nprocess 100 C 60 1000\n");
	fixture_read_as(&f, 1000, (struct sensor_context){0});
	assert_null(sensor_nvml.users(f.state, 0, &n));
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "recorder, which does not request users: no list is kept", nobody_asked);
	return rows_run(&tests, "nvml_users");
}
