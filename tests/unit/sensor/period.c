#include "sensor/sensor.h"

#include "base/util.h"
#include "tree.h"

#include <inttypes.h>

/* Measurement of update periods with a simulated clock: each reading of it takes 10 us, and counters change by the
 * clock only. So the figures are exact to the length of a round. On a busy machine the process runs for RUNS_NS, and then waits. */

enum { ZONES = 3, LOOK_NS = 10000, RUNS_NS = 3500000 };

static const struct row {
	const char *teaches;
	int64_t limit_ns;
	int64_t period_ns[ZONES]; // 0: never changes
	bool seen[ZONES];
	int64_t max_ns; // time that the measurement may take
	int64_t waits_ns;
} rows[] = {
	{"counter of 1 ms", 20 * NS_PER_MS, {NS_PER_MS}, {true}, 5 * NS_PER_MS},
	{"three counters of different periods, in one loop", 20 * NS_PER_MS, {NS_PER_MS, 2 * NS_PER_MS, NS_PER_MS / 2},
		{true, true, true}, 10 * NS_PER_MS},
	{"counter that never changes: not waited for", 20 * NS_PER_MS, {NS_PER_MS, 0, 0}, {true}, 5 * NS_PER_MS},
	{"no counter changes: start-up is short", 100 * NS_PER_MS, {0, 0, 0}, {false}, 4 * NS_PER_MS},
	{"too slow for the time allowed: unknown", 20 * NS_PER_MS, {NS_PER_MS, 100 * NS_PER_MS, 0}, {true},
		5 * NS_PER_MS},
	{"busy machine that interrupts the process for longer than the time limit: the period is exact", 5 * NS_PER_MS,
		{NS_PER_MS}, {true}, 50 * NS_PER_MS, 10 * NS_PER_MS + 3 * LOOK_NS},
	{"interruptions that leave no time: start-up is short", 5 * NS_PER_MS, {10 * NS_PER_MS, 0, 0}, {false},
		110 * NS_PER_MS, 50 * NS_PER_MS},
	{"time limit is kept", 2 * NS_PER_MS, {NS_PER_MS, 0, 0}, {false}, 3 * NS_PER_MS},
	{"time limit of 0: no measurement", 0, {NS_PER_MS, 0, 0}, {false}, LOOK_NS},
};

struct stage {
	struct tree tree;
	const struct row *row;
	int64_t now_ns, ran_ns;
	bool stands_still;
};

static void write_counter(const struct stage *stage, int i)
{
	char path[64], text[32];
	int64_t period_ns = stage->row->period_ns[i];
	snprintf(path, sizeof(path), "class/powercap/intel-rapl:%d/energy_uj", i);
	snprintf(text, sizeof(text), "%" PRId64 "\n", 1000 + (period_ns > 0 ? stage->now_ns / period_ns : 0));
	tree_write(&stage->tree, path, text);
}

static int64_t look(void *data)
{
	struct stage *stage = data;
	if (stage->stands_still)
		return stage->now_ns;
	stage->now_ns += LOOK_NS;
	stage->ran_ns += LOOK_NS;
	if (stage->row->waits_ns > 0 && stage->ran_ns % RUNS_NS == 0)
		stage->now_ns += stage->row->waits_ns;
	for (int i = 0; i < ZONES; i++)
		write_counter(stage, i);
	return stage->now_ns;
}

static void open_stage(struct stage *stage, struct wattle_env *env)
{
	tree_make(&stage->tree);
	for (int i = 0; i < ZONES; i++) {
		char path[64], name[32];
		snprintf(path, sizeof(path), "class/powercap/intel-rapl:%d/name", i);
		snprintf(name, sizeof(name), "package-%d\n", i);
		tree_write(&stage->tree, path, name);
		write_counter(stage, i);
	}
	setenv("WATTLE_SYSFS", stage->tree.root, 1);
	setenv("WATTLE_PROCFS", stage->tree.root, 1);
	assert_int_equal(env_open(env, NULL), 0);
	env->clock.monotonic_ns = look;
	env->clock.data = stage;
}

static void measure(void **state)
{
	const struct row *row = *state;
	struct stage stage = {.row = row, .now_ns = 1234567890};
	struct wattle_env env;
	open_stage(&stage, &env);
	void *sensor = calloc(1, sensor_powercap.state_size);
	int64_t start_ns = stage.now_ns;
	assert_int_equal(sensor_powercap.open(sensor, &env, &(struct sensor_options){.calibrate_ns = row->limit_ns},
				 NULL),
		0);
	assert_true(stage.now_ns - start_ns <= row->max_ns);
	size_t n;
	const struct domain *domains = sensor_powercap.domains(sensor, &n);
	assert_int_equal(n, ZONES);
	for (int i = 0; i < ZONES; i++) {
		int64_t expected_ns = row->seen[i] ? row->period_ns[i] : 0;
		assert_in_range(domains[i].update_period_ns + 100 * LOOK_NS, expected_ns + 95 * LOOK_NS,
			expected_ns + 105 * LOOK_NS);
	}
	sensor_powercap.close(sensor);
	free(sensor);
	env_close(&env);
	tree_finish(&stage.tree);
}

static void clock_that_stands_still(void **state)
{
	static const struct row still = {.period_ns = {0}};
	struct stage stage = {.row = &still, .now_ns = 5, .stands_still = true};
	struct wattle_env env;
	open_stage(&stage, &env);
	void *sensor = calloc(1, sensor_powercap.state_size);
	assert_int_equal(sensor_powercap.open(sensor, &env, &(struct sensor_options){.calibrate_ns = NS_PER_S}, NULL),
		0);
	sensor_powercap.close(sensor);
	free(sensor);
	env_close(&env);
	tree_finish(&stage.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, measure);
	ROWS_ADD_ONE(&tests, "clock that stands still: the measurement ends", clock_that_stands_still);
	return rows_run(&tests, "period");
}
