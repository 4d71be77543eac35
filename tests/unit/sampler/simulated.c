#include "base/util.h"
#include "fakes/powercap_load.c"
#include "energy/counter.h"
#include "sensor/sensor.h"
#include "tree.h"

#include <sys/wait.h>

/* tests/fakes/powercap_sim moves a counter along a known function of time; sensor and counter must arrive at its
 * integral. This program sets the simulator's time, so a busy machine does not matter. What remains is the step of
 * the counter at either end. */

static const double LOOK_S = 0.01;
enum { LOOKS = 80, QUANTUM_UJ = 1000 }; // the largest quantum of the rows

static const struct row {
	const char *teaches, *load;
	const char *dials[4]; // options of the simulator, after --zone
	enum { ANY, NONE } wraps;
} rows[] = {
	{"constant power", "80", {NULL}, NONE},
	{"a sine", "100+90*sin@0.3", {NULL}, NONE},
	{"steps", "20+200*step@0.1", {NULL}, NONE},
	{"counter that wraps every 50 ms", "200", {"--range=package-0=10000000"}, ANY},
	{"one wrap, 20 J after the start", "50", {"--start=package-0=262123328850"}, ANY},
	{"steps of a millijoule", "30+30*ramp@0.2", {"--quantum=package-0=1000"}, NONE},
	{"each value in a new file", "100", {"--rename"}, NONE},
	{"invalid content and missing files in between are bridged", "100",
		{"--garbage=package-0=0.2:0.3", "--vanish=package-0=0.4:0.5"}, NONE},
	{"counter stuck for a while", "100", {"--stuck=package-0=0.2:0.4"}, NONE},
};

struct simulator {
	pid_t pid;
	int to, from; // pipes
};

static void expect(const struct simulator *simulator, const char *word)
{
	char text[16] = "";
	ssize_t n = read(simulator->from, text, sizeof(text) - 1);
	assert_int_equal(n, (ssize_t)strlen(word));
	assert_string_equal(text, word);
}

static struct simulator start_simulator(const struct tree *tree, const struct row *row)
{
	char program[512], zone[128];
	snprintf(program, sizeof(program), "%s/tests/fakes/powercap_sim", getenv("WATTLE_BUILD"));
	snprintf(zone, sizeof(zone), "--zone=package-0=%s", row->load);
	const char *argv[9] = {program, "--manual-clock", tree->root, zone};
	memcpy(argv + 4, row->dials, sizeof(row->dials));
	int to[2], from[2];
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	struct simulator simulator = {.pid = fork(), .to = to[1], .from = from[0]};
	if (simulator.pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	expect(&simulator, "ready\n");
	return simulator;
}

static void set_time(const struct simulator *simulator, double t_s)
{
	dprintf(simulator->to, "%.9f\n", t_s);
	expect(simulator, "done\n");
}

static void end_simulator(const struct simulator *simulator)
{
	close(simulator->to); // it exits when its standard input is closed
	assert_int_equal(waitpid(simulator->pid, NULL, 0), simulator->pid);
	close(simulator->from);
}

// Readings from the origin of the simulator on.
static void sample(const struct simulator *simulator, const struct wattle_env *env, struct counter *counter)
{
	struct sensor_set set;
	assert_int_equal(sensor_set_open(&set, env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(set.n_devices, 1);
	assert_string_equal(set.sources[0], "powercap");
	counter_init(counter, set.devices[0]->energy_range_uj, set.devices[0]->max_power_w);
	for (int look = 0; look <= LOOKS; look++) {
		int64_t row[1][DEVICE_COUNT];
		struct sensor_context context = {.t_ns = NS_PER_S + (int64_t)llround(look * LOOK_S * 1e9)};
		set_time(simulator, look * LOOK_S);
		sensor_set_read(&set, &context, row);
		counter_feed(counter, context.t_ns, row[0][DEVICE_ENERGY_RAW], false);
	}
	sensor_set_close(&set);
}

static void compare_with_truth(void **state)
{
	const struct row *row = *state;
	struct tree tree;
	struct wattle_env env;
	struct counter counter;
	struct load load;
	assert_true(load_parse(row->load, &load));
	tree_make(&tree);
	struct simulator simulator = start_simulator(&tree, row);
	setenv("WATTLE_SYSFS", tree.root, 1);
	setenv("WATTLE_PROCFS", tree.root, 1);
	setenv("WATTLE_NVML", "/nonexistent.so", 1);
	assert_int_equal(env_open(&env, NULL), 0);
	sample(&simulator, &env, &counter);
	env_close(&env);
	end_simulator(&simulator);

	double truth_uj = load_energy_j(&load, LOOKS * LOOK_S) * 1e6;
	assert_true(fabs((double)counter.total - truth_uj) <= 2 * QUANTUM_UJ);
	assert_int_equal(counter.resets, 0);
	assert_int_equal(counter.wraps > 0, row->wraps == ANY);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, compare_with_truth);
	return rows_run(&tests, "simulated");
}
