#include "base/util.h"
#include "fakes/powercap_load.c"
#include "sampler/counter.h"
#include "sensor/sensor.h"
#include "tree.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* tests/fakes/powercap_sim moves a counter along a known function of time; the sensor and the counter must come to its
 * integral. What is left is the length of a tick at either end, and how late the machine wakes the simulator. */

static const double RUN_S = 0.8, TICK_S = 0.001;

static const struct row {
	const char *teaches, *load;
	const char *dials[4]; // options of the simulator, after --zone
	double peak_w;
	enum { ANY, NONE } wraps;
} rows[] = {
	{"constant power", "80", {NULL}, 80, NONE},
	{"a sine", "100+90*sin@0.3", {NULL}, 190, NONE},
	{"steps", "20+200*step@0.1", {NULL}, 220, NONE},
	{"a counter that wraps every 50 ms", "200", {"--range=package-0=10000000"}, 200, ANY},
	{"one wrap, 20 J after the start", "50", {"--start=package-0=262123328850"}, 50, ANY},
	{"steps of a millijoule", "30+30*ramp@0.2", {"--quantum=package-0=1000"}, 60, NONE},
	{"each value a new file", "100", {"--rename"}, 100, NONE},
	{"garbage and absence in between are bridged", "100",
		{"--garbage=package-0=0.2:0.3", "--vanish=package-0=0.4:0.5"}, 100, NONE},
	{"a counter that stands still for a while", "100", {"--stuck=package-0=0.2:0.4"}, 100, NONE},
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static pid_t start_simulator(const struct tree *tree, const struct row *row)
{
	char program[512], zone[128];
	snprintf(program, sizeof(program), "%s/tests/fakes/powercap_sim", getenv("WATTLE_BUILD"));
	snprintf(zone, sizeof(zone), "--zone=package-0=%s", row->load);
	const char *argv[8] = {program, tree->root, zone};
	memcpy(argv + 3, row->dials, sizeof(row->dials));
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ready[1], STDOUT_FILENO);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	char text[8];
	close(ready[1]);
	assert_true(read(ready[0], text, sizeof(text)) > 0);
	close(ready[0]);
	return pid;
}

static int64_t read_origin_ns(const struct tree *tree)
{
	char path[512], text[128];
	tree_path(tree, path, "truth.json");
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	int64_t origin_ns;
	assert_int_equal(sscanf(text, "{\"origin_ns\": %" SCNd64, &origin_ns), 1);
	return origin_ns;
}

struct seen {
	int64_t first_ns, last_ns;
	struct counter counter;
};

static void sample(struct seen *seen, const struct wattle_env *env)
{
	struct sensor_set set;
	assert_int_equal(sensor_set_open(&set, env, &(struct sensor_options){.calibrate_ns = 20 * NS_PER_MS}, NULL), 0);
	assert_int_equal(set.n_devices, 1);
	assert_string_equal(set.sources[0], "powercap");
	counter_init(&seen->counter, set.devices[0]->energy_range_uj, set.devices[0]->max_power_w);
	seen->first_ns = now_ns();
	do {
		int64_t row[1][DEVICE_COUNT];
		struct sensor_context context = {.t_ns = now_ns()};
		sensor_set_read(&set, &context, row);
		counter_feed(&seen->counter, context.t_ns, row[0][DEVICE_ENERGY], false);
		seen->last_ns = context.t_ns;
		nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
	} while (seen->last_ns < seen->first_ns + (int64_t)(RUN_S * 1e9));
	sensor_set_close(&set);
}

static void compare_with_truth(void **state)
{
	const struct row *row = *state;
	struct tree tree;
	struct wattle_env env;
	struct seen seen;
	struct load load;
	assert_true(load_parse(row->load, &load));
	tree_make(&tree);
	pid_t simulator = start_simulator(&tree, row);
	int64_t origin_ns = read_origin_ns(&tree);
	setenv("WATTLE_SYSFS", tree.root, 1);
	setenv("WATTLE_PROCFS", tree.root, 1);
	setenv("WATTLE_NVML", "/nonexistent.so", 1);
	assert_int_equal(env_open(&env, NULL), 0);
	sample(&seen, &env);
	env_close(&env);
	kill(simulator, SIGTERM);
	assert_int_equal(waitpid(simulator, NULL, 0), simulator);

	double truth_j = load_energy_j(&load, (double)(seen.last_ns - origin_ns) / 1e9) -
		load_energy_j(&load, (double)(seen.first_ns - origin_ns) / 1e9);
	double seen_j = (double)seen.counter.total / 1e6;
	// Ten ticks at either end: the simulator may have to wait for a CPU of a busy machine.
	assert_true(fabs(seen_j - truth_j) <= 0.001 * truth_j + 20 * TICK_S * row->peak_w);
	assert_int_equal(seen.counter.resets, 0);
	assert_int_equal(seen.counter.wraps > 0, row->wraps == ANY);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, compare_with_truth);
	return rows_run(&tests, "simulated");
}
