#include "sensor/sensor.h"

#include "base/util.h"
#include "tree.h"

#include <errno.h>

static void kinds_by_name(void **state)
{
	for (int kind = 0; kind < DOMAIN_KINDS; kind++) {
		assert_int_equal(domain_kind_from_name(domain_kind_name((enum domain_kind)kind)), kind);
		assert_true(domain_kind_max_power_w((enum domain_kind)kind) > 0);
	}
	assert_int_equal(domain_kind_from_name("packages"), -EINVAL);
	assert_int_equal(domain_kind_from_name(""), -EINVAL);
	for (int provenance = 0; provenance < PROVENANCE_KINDS; provenance++)
		assert_int_equal(provenance_from_name(provenance_name((enum provenance)provenance)), provenance);
	assert_int_equal(provenance_from_name("guessed"), -EINVAL);
}

static const struct adding {
	const char *teaches, *kind;
	bool adds_up;
} adding[] = {
	{"packages are added", "package", true},
	{"memory is added, as it is in no package", "dram", true},
	{"GPUs are added", "gpu", true},
	{"cores are part of the package", "core", false},
	{"the uncore is part of the package", "uncore", false},
	{"the platform contains the package", "psys", false},
	{"the node contains all", "node", false},
	{"a battery supplies everything", "battery", false},
	{"a wall meter contains everything", "wall", false},
};

static void adds_up(void **state)
{
	const struct adding *row = *state;
	assert_int_equal(domain_kind_adds_up((enum domain_kind)domain_kind_from_name(row->kind)), row->adds_up);
}

static const pid_t few[] = {2, 3, 5, 8, 13};
static const struct member {
	const char *teaches;
	size_t n;
	pid_t pid;
	bool expected;
} members[] = {
	{"the first", 5, 2, true},
	{"the last", 5, 13, true},
	{"GPU list: one in the middle", 5, 5, true},
	{"GPU list: before the first", 5, 1, false},
	{"GPU list: after the last", 5, 14, false},
	{"between two", 5, 6, false},
	{"GPU list: the only one", 1, 2, true},
	{"GPU list: not the only one", 1, 3, false},
	{"nobody", 0, 2, false},
};

static void has_pid(void **state)
{
	const struct member *row = *state;
	struct sensor_context context = {.target_pids = few, .n_target_pids = row->n};
	assert_int_equal(sensor_context_has_pid(&context, row->pid), row->expected);
}

static const struct nesting {
	const char *teaches, *inside; // of the GPU
	bool adds_up;
} nestings[] = {
	{"domain in no other: added", "", true},
	{"domain in a missing one: added", "package-7", true},
	{"domain in one that is added: not added", "package-0", false},
	{"domain in one that is not added itself: added", "psys", true},
	{"domains nested at any depth", "core-0", false},
	{"circular domain names", "node-a", true},
};

static void enters_the_total(void **state)
{
	const struct nesting *row = *state;
	struct domain domains[] = {
		{.name = "package-0", .kind = DOMAIN_PACKAGE, .inside = "psys"},
		{.name = "psys", .kind = DOMAIN_PSYS},
		{.name = "core-0", .kind = DOMAIN_CORE, .inside = "package-0"},
		{.name = "node-a", .kind = DOMAIN_NODE, .inside = "node-b"},
		{.name = "node-b", .kind = DOMAIN_NODE, .inside = "node-a"},
		{.name = "gpu-0", .kind = DOMAIN_GPU},
	};
	const struct domain *devices[ARRAY_SIZE(domains)];
	for (size_t i = 0; i < ARRAY_SIZE(domains); i++)
		devices[i] = &domains[i];
	const struct sensor_set set = {.devices = devices, .n_devices = ARRAY_SIZE(domains)};
	struct domain *gpu = &domains[ARRAY_SIZE(domains) - 1];
	text_copy(gpu->inside, sizeof(gpu->inside), row->inside);
	assert_int_equal(sensor_set_adds_up(&set, gpu), row->adds_up);
	assert_true(sensor_set_adds_up(&set, &domains[0]));
	assert_false(sensor_set_adds_up(&set, &domains[2]));
	assert_ptr_equal(sensor_set_find(&set, "gpu-0"), gpu);
	assert_null(sensor_set_find(&set, ""));
}

static void open_tree(struct wattle_env *env, struct tree *tree)
{
	tree_make(tree);
	tree_write(tree, "class/powercap/intel-rapl:0/name", "package-0\n");
	tree_write(tree, "class/powercap/intel-rapl:0/energy_uj", "1000\n");
	tree_write(tree, "class/powercap/intel-rapl:0:0/name", "core\n");
	tree_write(tree, "class/powercap/intel-rapl:0:0/energy_uj", "bad\n");
	tree_write(tree, "class/powercap/intel-rapl:0:1/name", "dram\n");
	tree_write(tree, "class/powercap/intel-rapl:0:1/energy_uj", "300\n");
	tree_write(tree, "cpuinfo", "processor\t: 0\nmodel name\t: A CPU\n");
	setenv("WATTLE_SYSFS", tree->root, 1);
	setenv("WATTLE_PROCFS", tree->root, 1);
	setenv("WATTLE_NVML", "/nonexistent.so", 1);
	assert_int_equal(env_open(env, NULL), 0);
}

// Unused domains between the used ones get no row; each device has its own values.
static void rows_belong_to_devices(void **state)
{
	struct tree tree;
	struct wattle_env env;
	struct sensor_set set;
	open_tree(&env, &tree);
	assert_int_equal(sensor_set_open(&set, &env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(set.n_devices, 2);
	assert_string_equal(set.devices[0]->name, "package-0");
	assert_string_equal(set.devices[1]->name, "dram-0");
	assert_string_equal(set.sources[0], "powercap");
	assert_true(set.devices[0]->max_power_w > 0);

	int64_t rows[2][DEVICE_COUNT] = {{7}, {7}};
	struct sensor_context context = {.system_busy_ns = VALUE_MISSING, .system_idle_ns = VALUE_MISSING};
	sensor_set_read(&set, &context, rows);
	assert_int_equal(rows[0][DEVICE_ENERGY_RAW], 1000);
	assert_int_equal(rows[1][DEVICE_ENERGY_RAW], 300);
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		if (m != DEVICE_ENERGY_RAW)
			assert_int_equal(rows[0][m], VALUE_MISSING);

	sensor_set_close(&set);
	sensor_set_close(&set); // closing twice is harmless
	env_close(&env);
	tree_finish(&tree);
}

static void wrong_request_fails(void **state)
{
	struct tree tree;
	struct wattle_env env;
	struct sensor_set set;
	struct wattle_error error = {0};
	open_tree(&env, &tree);
	assert_int_equal(sensor_set_open(&set, &env, &(struct sensor_options){.gpus = "GPU-not-there"}, &error),
		-EINVAL);
	assert_true(error.text[0] != '\0');
	assert_int_equal(set.n_slots, 0); // all closed again
	env_close(&env);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "kinds and provenances: names are unique and can be looked up", kinds_by_name);
	ROWS_ADD(&tests, adding, adds_up);
	ROWS_ADD(&tests, members, has_pid);
	ROWS_ADD(&tests, nestings, enters_the_total);
	ROWS_ADD_ONE(&tests, "rows: used domains only, in order", rows_belong_to_devices);
	ROWS_ADD_ONE(&tests, "GPU that does not exist: an invalid request", wrong_request_fails);
	return rows_run(&tests, "sensor");
}
