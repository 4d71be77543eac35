#include "sampler/sampler.h"

#include "rows.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The allocator's own hooks, present in sanitizer builds. A test that cannot count reports that instead of passing. */
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
	void (*on_free)(const volatile void *));

static volatile int n_allocations, n_releases;
static volatile bool counting;

static void on_malloc(const volatile void *memory, size_t size)
{
	n_allocations += counting;
}

static void on_free(const volatile void *memory)
{
	n_releases += counting;
}

// A process with children that sleep until they are ended.
static pid_t start_target(int n_children)
{
	pid_t root = fork();
	if (root != 0)
		return root;
	setpgid(0, 0);
	for (int i = 0; i < n_children && fork() != 0; i++) {}
	for (;;)
		pause();
}

static void take_samples(struct sampler *sampler, struct batch *batch, int n)
{
	for (int i = 0; i < n; i++) {
		batch_clear(batch);
		sampler_tick(sampler, env_now_ns(sampler->env), batch);
		sampler_forget_events(sampler);
		tree_forget_ended(sampler->tree);
	}
}

static void no_allocation_while_sampling(void **state)
{
	if (__sanitizer_install_malloc_and_free_hooks == NULL)
		SKIP_BECAUSE("this build has no sanitizer to count allocations with");
	char sysfs[512];
	snprintf(sysfs, sizeof(sysfs), "%s/machines/xeon-2s/sys", getenv("WATTLE_TESTS"));
	setenv("WATTLE_SYSFS", sysfs, 1);
	setenv("WATTLE_NVML", "/nonexistent", 1);
	pid_t root = start_target(10);
	assert_true(root > 0);
	struct wattle_env env;
	struct sensor_set sensors;
	struct tree tree;
	struct sampler sampler;
	struct batch batch;
	const struct sampler_options options = {.interval_ns = 10 * NS_PER_MS, .budget_percent = 100, .per_process = true};
	assert_int_equal(env_open(&env, NULL), 0);
	assert_int_equal(sensor_set_open(&sensors, &env, &(struct sensor_options){0}, NULL), 0);
	assert_int_equal(tree_open(&tree, &env, root, 0), 0);
	assert_int_equal(sampler_open(&sampler, &env, &sensors, &tree, &options), 0);
	assert_int_equal(batch_init(&batch, 1 << 16), 0);
	assert_true(sensors.n_devices >= 2);

	for (int i = 0; i < 5000 && tree.n_pids < 11; i++) // until all of them exist
		take_samples(&sampler, &batch, 1);
	assert_int_equal(tree.n_pids, 11);
	take_samples(&sampler, &batch, 50);
	assert_true(batch.n_samples == 1 && batch.n_lost == 0);
	assert_int_equal(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0, 1);
	free(malloc(1)); // not counted yet
	counting = true;
	take_samples(&sampler, &batch, 500);
	counting = false;
	int allocations = n_allocations, releases = n_releases;
	counting = true;
	free(malloc(1)); // check that the hooks count
	counting = false;

	batch_finish(&batch);
	sampler_close(&sampler);
	tree_close(&tree);
	sensor_set_close(&sensors);
	env_close(&env);
	kill(-root, SIGKILL);
	waitpid(root, NULL, 0);
	assert_int_equal(n_allocations, allocations + 1);
	assert_int_equal(allocations, 0);
	assert_int_equal(releases, 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "500 samples of 11 processes and a machine's zones: no allocation, no release",
		no_allocation_while_sampling);
	return rows_run(&tests, "steady_state");
}
