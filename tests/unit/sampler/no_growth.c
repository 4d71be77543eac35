#include "sampler/sampler.h"

#define tree made_tree // the folder of a machine is a `struct tree` as well
#include "tree.h"
#undef tree

#include <dirent.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>

/* Two hundred thousand ticks, a millisecond of simulated time apart, divided among all machines of tests/machines: neither
 * descriptors nor memory may grow. Meanwhile the counters change and wrap, a counter's file disappears and returns,
 * and the target has a new child each time. */

enum {
	TICKS = 200000,
	GPU_TICKS = 20000,
	MOVE_TICKS = 100,    // counters change
	UNPLUG_TICKS = 2000, // a round in which one counter is missing for a while
	AWAY_FROM = 1000,
	AWAY_UNTIL = 1200,
	COUNTERS_MAX = 32
};

extern char **environ;

// Available in sanitizer builds, whose allocator is not covered by the C library's count.
__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

static size_t heap_bytes(void)
{
	if (__sanitizer_get_current_allocated_bytes != NULL)
		return __sanitizer_get_current_allocated_bytes();
	return mallinfo2().uordblks;
}

static int count_descriptors(void)
{
	int n = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

/* ---- a machine whose counters change ---- */

struct counters {
	char paths[COUNTERS_MAX][512];
	uint64_t uj[COUNTERS_MAX];
	size_t n;
};

static struct counters counters; // nftw has no argument for user data

static int note_counter(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	bool is_counter = strncmp(name, "energy", 6) == 0 &&
		(strstr(name, "_uj") != NULL || strstr(name, "_input") != NULL);
	if (type == FTW_F && is_counter && counters.n < COUNTERS_MAX)
		snprintf(counters.paths[counters.n++], sizeof(counters.paths[0]), "%s", path);
	return 0;
}

static void write_number(const char *path, uint64_t value)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "%llu\n", (unsigned long long)value);
	fclose(file);
}

// 25 J in a tenth of a second; a counter of 2^32 uJ wraps every 17 s.
static void move_counters(bool unplugged)
{
	for (size_t i = 0; i < counters.n; i++) {
		counters.uj[i] = (counters.uj[i] + 25000000) % UINT32_MAX;
		if (unplugged && i == 0)
			remove(counters.paths[0]);
		else
			write_number(counters.paths[i], counters.uj[i]);
	}
}

static void write_process(const struct made_tree *tree, int pid, int ppid, long ticks)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	snprintf(text, sizeof(text), "%d (p) S %d 1 1 0 -1 0 0 0 0 0 %ld 0 0 0 20 0 1 0 %d 0 10 0 0\n", pid, ppid,
		ticks, pid);
	tree_write(tree, path, text);
}

// Process 100 has one child: 101, then 102, and so on.
static void next_child(const struct made_tree *tree, long step)
{
	char path[64], text[16];
	int pid = 101 + (int)step;
	snprintf(path, sizeof(path), "proc/%d/stat", pid - 1);
	if (step > 0)
		tree_remove(tree, path);
	write_process(tree, pid, 100, 1);
	write_process(tree, 100, 1, step);
	snprintf(text, sizeof(text), "%d ", pid);
	tree_write(tree, "proc/100/task/100/children", text);
}

static void move(const struct made_tree *tree, long tick)
{
	if (tick % MOVE_TICKS != 0)
		return;
	move_counters(tick % UNPLUG_TICKS >= AWAY_FROM && tick % UNPLUG_TICKS < AWAY_UNTIL);
	next_child(tree, tick / MOVE_TICKS);
}

/* ---- a recorder without stores ---- */

struct recording {
	struct wattle_env env;
	struct sensor_set sensors;
	struct tree tree;
	struct sampler sampler;
	struct batch batch;
	int64_t t_ns;
};

static int64_t now_ns(void *data)
{
	return ((struct recording *)data)->t_ns;
}

static void recording_open(struct recording *recording)
{
	const struct sampler_options options = {.interval_ns = NS_PER_MS, .budget_percent = 1, .per_process = true};
	*recording = (struct recording){.t_ns = 1000 * NS_PER_S};
	assert_int_equal(env_open(&recording->env, NULL), 0);
	recording->env.clock = (struct env_clock){now_ns, now_ns, now_ns, recording};
	assert_int_equal(sensor_set_open(&recording->sensors, &recording->env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(tree_open(&recording->tree, &recording->env, 100, 0), 0);
	assert_int_equal(sampler_open(&recording->sampler, &recording->env, &recording->sensors, &recording->tree,
				 &options),
		0);
	assert_int_equal(batch_init(&recording->batch, 1 << 16), 0);
}

static void recording_close(struct recording *recording)
{
	batch_finish(&recording->batch);
	sampler_close(&recording->sampler);
	tree_close(&recording->tree);
	sensor_set_close(&recording->sensors);
	env_close(&recording->env);
}

static void record(struct recording *recording, const struct made_tree *tree, long from, long to)
{
	for (long tick = from; tick < to; tick++) {
		move(tree, tick);
		recording->t_ns += NS_PER_MS;
		batch_clear(&recording->batch);
		sampler_tick(&recording->sampler, recording->t_ns, &recording->batch);
		assert_int_equal(recording->batch.n_lost, 0);
		sampler_forget_events(&recording->sampler);
		tree_forget_ended(&recording->tree);
	}
}

/* ---- the test ---- */

static void copy_machine(const char *name, struct made_tree *tree)
{
	char from[512];
	pid_t pid;
	int status;
	tree_make(tree);
	snprintf(from, sizeof(from), "%s/machines/%s/.", getenv("WATTLE_TESTS"), name);
	char program[] = "cp", option[] = "-r", *const argv[] = {program, option, from, tree->root, NULL};
	assert_int_equal(posix_spawnp(&pid, program, NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	counters.n = 0;
	nftw(tree->root, note_counter, 16, FTW_PHYS);
}

static void point_at(const char *variable, const struct made_tree *tree, const char *part)
{
	char path[512];
	tree_path(tree, path, "%s", part);
	mkdir(path, 0755);
	setenv(variable, path, 1);
}

// Number of rounds.
static void measure(const char *machine, long rounds, size_t devices_min)
{
	struct made_tree tree;
	struct recording recording;
	copy_machine(machine, &tree);
	point_at("WATTLE_SYSFS", &tree, "sys");
	point_at("WATTLE_PROCFS", &tree, "proc");
	next_child(&tree, 0);
	recording_open(&recording);
	assert_true(recording.sensors.n_devices >= devices_min);
	record(&recording, &tree, 0, UNPLUG_TICKS); // tables reach their final size
	int descriptors = count_descriptors();
	size_t heap = heap_bytes();
	record(&recording, &tree, UNPLUG_TICKS, rounds * UNPLUG_TICKS);
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(heap_bytes(), heap);
	assert_int_equal(recording.sampler.n_samples, rounds * UNPLUG_TICKS);
	assert_int_equal(recording.tree.n_pids, 2);
	recording_close(&recording);
	tree_finish(&tree);
}

static int is_machine(const struct dirent *entry)
{
	return strchr(entry->d_name, '.') == NULL; // skip the README
}

static void ticks_of_all_machines(void **state)
{
	char path[512];
	struct dirent **machines;
	snprintf(path, sizeof(path), "%s/machines", getenv("WATTLE_TESTS"));
	int n = scandir(path, &machines, is_machine, alphasort);
	assert_true(n > 0);
	setenv("WATTLE_NVML", "/nonexistent", 1);
	int descriptors = count_descriptors();
	for (int i = 0; i < n; i++) {
		print_message("# %s\n", machines[i]->d_name);
		measure(machines[i]->d_name, TICKS / UNPLUG_TICKS / n + 1, 0);
		free(machines[i]);
	}
	free(machines);
	assert_int_equal(count_descriptors(), descriptors);
}

/* A machine with GPUs and no zones. One is lost for a while, one has no energy counter, and each runs a process of
 * the target and another one. */
static void ticks_of_gpus(void **state)
{
	char library[512];
	struct made_tree cards;
	tree_make(&cards);
	tree_write(&cards, "cards",
		"gpu\nprocess 100 C 60 1000000\nprocess 7 C 20 500000\n"
		"gpu\nprocess 100 C 60 1000000\nerror nvmlDeviceGetTotalEnergyConsumption 3\n"
		"gpu\nprocess 7 C 60 1000000\nerror nvmlDeviceGetTotalEnergyConsumption 15 500 900\n"
		"error nvmlDeviceGetPowerUsage 15 500 900\nerror nvmlDeviceGetComputeRunningProcesses 15 500 900\n"
		"gpu\nsamples 4\nprocess 7 C 60 unknown\n");
	snprintf(library, sizeof(library), "%s/tests/fakes/nvml/libnvidia-ml-fake.so", getenv("WATTLE_BUILD"));
	setenv("WATTLE_NVML", library, 1);
	char path[512];
	tree_path(&cards, path, "cards");
	setenv("WATTLE_FAKE_NVML", path, 1);
	int descriptors = count_descriptors();
	measure("vm", GPU_TICKS / UNPLUG_TICKS, 4);
	assert_int_equal(count_descriptors(), descriptors);
	tree_finish(&cards);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "200,000 ticks on all machines: descriptors and memory as after the first round",
		ticks_of_all_machines);
	ROWS_ADD_ONE(&tests, "20,000 ticks of four GPUs, one of which is lost for a while: no growth", ticks_of_gpus);
	return rows_run(&tests, "no_growth");
}
