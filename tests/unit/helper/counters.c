/* How often a counter is read for a class of clients, whatever the rhythm of their requests. */
#include "helper/server.h"

#include "base/util.h"
#include "tree.h"

enum { ASKS_MAX = 40 };

static const struct row {
	const char *teaches;
	int64_t ask_us[ASKS_MAX]; // time after the first request, at 0; 0 ends the list
	size_t readings;          // readings made, the first one included; the period is 100 ms
} rows[] = {
	{"requests once a period with jitter: one reading is lost at first, then none",
		{99900, 200050, 299950, 400100, 499900, 600000, 699950, 800020, 899900, 1000000}, 10},
	{"continuous requests: readings are a period apart",
		{20000, 40000, 60000, 80000, 99999, 100000, 150000, 199999, 200000, 299999}, 3},
	{"late reading: the next one is earlier by at most a twentieth of the period", {190000, 284999, 285000}, 3},
	{"late reading: the second one after it is a full period later", {190000, 285000, 384999}, 3},
	{"requests at half the allowed rate: each gets a new reading", {200000, 400000, 600000}, 4},
};

static void check(void **state)
{
	const struct row *row = *state;
	static struct counters counters;
	struct counter_class class;
	struct tree tree;
	struct wattle_env env;
	tree_make(&tree);
	tree_write(&tree, "class/powercap/intel-rapl:0/name", "package-0\n");
	tree_write(&tree, "class/powercap/intel-rapl:0/energy_uj", "5\n");
	setenv("WATTLE_SYSFS", tree.root, 1);
	assert_int_equal(env_open(&env, NULL), 0);
	assert_int_equal(counters_open(&counters, &env), 0);
	assert_int_equal(counters.n, 1);
	assert_int_equal(counter_class_init(&class, 100 * NS_PER_MS, &counters), 0);

	const int64_t start_ns = 1000 * NS_PER_S;
	int64_t last_ns = counters_read(&counters, &class, 0, start_ns).t_ns;
	size_t readings = 1;
	for (size_t i = 0; i < ASKS_MAX && row->ask_us[i] > 0; i++) {
		int64_t t_ns = counters_read(&counters, &class, 0, start_ns + row->ask_us[i] * 1000).t_ns;
		readings += t_ns != last_ns;
		last_ns = t_ns;
	}
	assert_int_equal(readings, row->readings);
	counter_class_finish(&class);
	counters_close(&counters);
	env_close(&env);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "counters");
}
