#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"
#include "tree.h"

#include <fcntl.h>

/* A node with a CPU and two MI300X; KFD numbers them 9001 and 9002. Processes 100 and 200 belong to the target, 7 to
 * another user. All have a file for each GPU. */
#define NODES "class/kfd/kfd/topology/nodes/"
#define PROCESSES "class/kfd/kfd/proc/"

static const struct {
	const char *path, *text;
} files[] = {
	{NODES "0/gpu_id", "0\n"},
	{NODES "0/properties", "cpu_cores_count 96\nlocation_id 0\ndomain 0\n"},
	{NODES "1/gpu_id", "9001\n"},
	{NODES "1/properties", "cpu_cores_count 0\nsimd_count 1216\nlocation_id 768\ndomain 0\nunique_id 1\n"},
	{NODES "2/gpu_id", "9002\n"},
	{NODES "2/properties", "simd_count 1216\nlocation_id 17152\ndomain 1\n"},
	{PROCESSES "100/vram_9001", "1000\n"},
	{PROCESSES "100/vram_9002", "0\n"},
	{PROCESSES "100/stats_9001/cu_occupancy", "30\n"},
	{PROCESSES "200/vram_9001", "500\n"},
	{PROCESSES "200/stats_9001/cu_occupancy", "10\n"},
	{PROCESSES "7/vram_9001", "200\n"},
	{PROCESSES "7/vram_9002", "300\n"},
	{PROCESSES "notapid/vram_9001", "77\n"},
};

static const char *const cards[] = {"0000:03:00.0", "0001:43:00.0", "0000:c3:00.0"};

static void write_files(const struct tree *tree)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		tree_write(tree, files[i].path, files[i].text);
	for (size_t i = 0; i < 3; i++) { // alive, for matching process ids
		static const char *const stats[] = {"proc/100/status", "proc/200/status", "proc/7/status"};
		tree_write(tree, stats[i], "Name:\tx\n");
	}
}

static void sorts_processes(void **state)
{
	struct tree tree;
	char proc[512];
	tree_make(&tree);
	write_files(&tree);
	tree_path(&tree, proc, "proc");
	const struct wattle_env env = {
		.sysfs_fd = open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.procfs_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.procfs_replaced = true,
	};
	struct kfd *kfd = kfd_new(&env, cards, ARRAY_SIZE(cards));
	assert_non_null(kfd);
	assert_true(kfd_has(kfd, 0) && kfd_has(kfd, 1));
	assert_false(kfd_has(kfd, 2));

	static const pid_t target[] = {100, 200};
	const struct sensor_context context = {
		.t_ns = NS_PER_S,
		.main_pid = 100,
		.target_pids = target,
		.n_target_pids = ARRAY_SIZE(target),
	};
	struct kfd_use uses[ARRAY_SIZE(cards)];
	kfd_read(kfd, &context, uses);
	assert_int_equal(uses[0].main_bytes, 1000);
	assert_int_equal(uses[0].target_bytes, 1500);
	assert_int_equal(uses[0].others_bytes, 200);
	assert_int_equal(uses[0].target_processes, 2);
	assert_int_equal(uses[0].others_processes, 1);
	assert_int_equal(uses[0].target_units, 40);
	assert_true(uses[0].others_units == VALUE_MISSING); // the files of 7 are unreadable
	assert_int_equal(uses[1].target_processes, 0);      // a file of 0 bytes: the GPU is not used
	assert_int_equal(uses[1].others_bytes, 300);

	kfd_free(kfd);
	close(env.sysfs_fd);
	close(env.procfs_fd);
	tree_finish(&tree);
}

static void without_kfd(void **state)
{
	struct tree tree;
	tree_make(&tree);
	const struct wattle_env env = {.sysfs_fd = open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.procfs_fd = -1};
	assert_null(kfd_new(&env, cards, ARRAY_SIZE(cards)));
	assert_false(kfd_has(NULL, 0));
	close(env.sysfs_fd);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "memory and compute units, by owner", sorts_processes);
	ROWS_ADD_ONE(&tests, "machine without KFD", without_kfd);
	return rows_run(&tests, "kfd");
}
