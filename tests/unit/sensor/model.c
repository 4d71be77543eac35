#include "sensor/sensor.h"

#include "base/util.h"
#include "sensor/internal.h"
#include "tree.h"

static const struct rating {
	const char *teaches, *model_name;
	double tdp_w; // 0: not in the table
	int cores;
} ratings[] = {
	{"a server", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 270, 40},
	{"K suffix: a rating of its own", "Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz", 91, 4},
	{"no K suffix: a rating of its own", "Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz", 65, 4},
	{"generations differ by their v", "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 135, 14},
	{"generation without a v is 0", "Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz", 135, 8},
	{"name that ends in +", "Intel(R) Xeon(R) Platinum 8480+", 350, 56},
	{"words before the name", "13th Gen Intel(R) Core(TM) i9-13900K", 125, 24},
	{"AMD: text after the model", "AMD EPYC 7763 64-Core Processor", 280, 64},
	{"7950X3D is not 7950X", "AMD Ryzen 9 7950X3D 16-Core Processor", 120, 16},
	{"part of a name: no match", "Intel(R) Xeon(R) Platinum 83800 CPU", 0, 0},
	{"name in a cloud", "Intel(R) Xeon(R) Processor", 0, 0},
	{"no name", "", 0, 0},
};

static void rated(void **state)
{
	const struct rating *row = *state;
	struct cpu_power power = {0};
	assert_int_equal(cpu_power_find(row->model_name, &power), row->tdp_w > 0);
	assert_int_equal(power.cores, row->cores);
	assert_true(power.tdp_w == row->tdp_w);
}

#define CPU(number, socket, cores, model, flags)                                                                       \
	"processor\t: " #number "\nmodel name\t: " model "\nphysical id\t: " #socket "\ncpu cores\t: " #cores          \
	"\nflags\t\t: fpu vme" flags "\n\n"
#define XEON "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"
#define I7 "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz"

static const struct row {
	const char *teaches, *cpuinfo;
	size_t sockets;
	int64_t idle_mw, half_mw, full_mw; // of the last socket
	double relative_error;
} rows[] = {
	{"server with a rating of 270 W: a tenth idle, nine tenths busy",
		CPU(0, 0, 40, XEON, "") CPU(1, 0, 40, XEON, ""), 1, 27000, 135000, 243000, 0.65},
	{"desktop with a rating", CPU(0, 0, 6, I7, ""), 1, 9500, 47500, 85500, 0.65},
	{"two sockets, each with its own rating", CPU(0, 0, 40, XEON, "") CPU(1, 1, 40, XEON, ""), 2, 27000, 135000,
		243000, 0.65},
	{"virtual machine with 4 of 40 cores: power of its cores only", CPU(0, 0, 4, XEON, " hypervisor lahf_lm"), 1,
		2700, 13500, 24300, 0.8},
	{"more virtual cores than the socket has: one socket", CPU(0, 0, 80, XEON, " hypervisor"), 1, 27000, 135000,
		243000, 0.8},
	{"unknown CPU: 6 W for each core", CPU(0, 0, 2, "Intel(R) Xeon(R) Processor", ""), 1, 1200, 6000, 10800, 0.8},
	{"ARM without a model name: 3 W for each CPU",
		"processor\t: 0\nCPU implementer\t: 0x41\n\nprocessor\t: 1\nCPU implementer\t: 0x41\n", 1, 600, 3000,
		5400, 0.8},
	{"number of cores unknown: CPUs are counted", "processor: 0\nprocessor: 1\nprocessor: 2\n", 1, 1800, 9000,
		16200, 0.8},
	{"no CPU: no domain", "nothing\nof : use\n", 0},
	{"an empty file", "", 0},
};

static int64_t read_power(void *sensor, size_t n, int64_t busy_ns, int64_t idle_ns)
{
	int64_t rows_[16][DEVICE_COUNT];
	for (size_t i = 0; i < n; i++)
		rows_[i][DEVICE_POWER] = VALUE_MISSING;
	sensor_model.read(sensor, &(struct sensor_context){.system_busy_ns = busy_ns, .system_idle_ns = idle_ns},
		rows_);
	return n > 0 ? rows_[n - 1][DEVICE_POWER] : VALUE_MISSING;
}

static void *open_model(struct wattle_env *env, struct tree *tree, const char *cpuinfo)
{
	tree_make(tree);
	tree_write(tree, "cpuinfo", cpuinfo);
	setenv("WATTLE_PROCFS", tree->root, 1);
	setenv("WATTLE_SYSFS", tree->root, 1);
	assert_int_equal(env_open(env, NULL), 0);
	void *sensor = calloc(1, sensor_model.state_size);
	assert_int_equal(sensor_model.open(sensor, env, &(struct sensor_options){0}, NULL), 0);
	return sensor;
}

static void close_model(void *sensor, struct wattle_env *env, struct tree *tree)
{
	sensor_model.close(sensor);
	free(sensor);
	env_close(env);
	tree_finish(tree);
}

static void powers(void **state)
{
	const struct row *row = *state;
	struct tree tree;
	struct wattle_env env;
	void *sensor = open_model(&env, &tree, row->cpuinfo);
	size_t n;
	const struct domain *domains = sensor_model.domains(sensor, &n);
	assert_int_equal(n, row->sockets);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(domains[i].provenance, PROVENANCE_ESTIMATED);
		assert_false(domains[i].has_energy);
		assert_true(domains[i].relative_error == row->relative_error);
	}
	if (n > 0) {
		const int64_t s = NS_PER_S;
		assert_int_equal(read_power(sensor, n, 1000 * s, 5000 * s), VALUE_MISSING); // load not known yet
		assert_int_equal(read_power(sensor, n, 1000 * s, 5010 * s), row->idle_mw);
		assert_int_equal(read_power(sensor, n, 1010 * s, 5020 * s), row->half_mw);
		assert_int_equal(read_power(sensor, n, 1020 * s, 5020 * s), row->full_mw);
	}
	close_model(sensor, &env, &tree);
}

// Readings faster than the ticks of /proc/stat keep the last load; unreadable ones are missing, never 0.
static void between_ticks(void **state)
{
	struct tree tree;
	struct wattle_env env;
	void *sensor = open_model(&env, &tree, CPU(0, 0, 1, "A CPU", "")); // 0.6 W idle, 5.4 W full
	const int64_t ms = NS_PER_MS;
	read_power(sensor, 1, 0, 0);
	assert_int_equal(read_power(sensor, 1, 0, 0), VALUE_MISSING); // no change: still unknown
	assert_int_equal(read_power(sensor, 1, 10 * ms, 0), 5400);
	assert_int_equal(read_power(sensor, 1, 10 * ms, 10 * ms), 5400);  // one tick is not enough
	assert_int_equal(read_power(sensor, 1, 20 * ms, 20 * ms), 2200);  // 10 ms of 30 ms
	assert_int_equal(read_power(sensor, 1, 120 * ms, 10 * ms), 5400); // idle time decreased: full load, not more
	assert_int_equal(read_power(sensor, 1, VALUE_MISSING, 10 * ms), VALUE_MISSING);
	assert_int_equal(read_power(sensor, 1, 500 * ms, 10 * ms), VALUE_MISSING);
	assert_int_equal(read_power(sensor, 1, 500 * ms, 110 * ms), 600);
	close_model(sensor, &env, &tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, ratings, rated);
	ROWS_ADD(&tests, rows, powers);
	ROWS_ADD_ONE(&tests, "between two ticks the load is kept", between_ticks);
	return rows_run(&tests, "model");
}
