#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"
#include "tree.h"

#include <fcntl.h>

static const char *const cards[] = {"0000:03:00.0", "0000:43:00.0"};
static const pid_t target[] = {100, 200};

struct fixture {
	struct tree tree;
	struct wattle_env env;
	struct drm_clients *clients;
	struct drm_use uses[2];
};

static void init(struct fixture *f)
{
	*f = (struct fixture){0};
	tree_make(&f->tree);
	f->env.procfs_fd = open(f->tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->clients = drm_clients_new(&f->env, cards, ARRAY_SIZE(cards));
	assert_non_null(f->clients);
}

static void finish(struct fixture *f)
{
	drm_clients_free(f->clients);
	close(f->env.procfs_fd);
	tree_finish(&f->tree);
}

// An open device of a process: its path and the kernel's data about it.
static void put(struct fixture *f, pid_t pid, int fd, const char *pci, int client, int64_t gfx_ns, int vram_kib)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "%d/fd/%d", (int)pid, fd);
	char full[512];
	tree_path(&f->tree, full, "%s", path);
	if (access(full, F_OK) != 0 && faccessat(AT_FDCWD, full, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		tree_link(&f->tree, path, "/dev/dri/renderD128");
	snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)pid, fd);
	snprintf(text, sizeof(text),
		"pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t%s\ndrm-client-id:\t%d\ndrm-memory-vram:\t%d KiB\n"
		"drm-engine-gfx:\t%lld ns\n",
		pci, client, vram_kib, (long long)gfx_ns);
	tree_write(&f->tree, path, text);
}

static void read_at(struct fixture *f, int64_t t_ms)
{
	const struct sensor_context context = {
		.t_ns = t_ms * NS_PER_MS,
		.main_pid = 100,
		.target_pids = target,
		.n_target_pids = ARRAY_SIZE(target),
	};
	drm_clients_read(f->clients, &context, f->uses);
}

static void assert_percent(double value, double expected)
{
	if (!(fabs(value - expected) < 0.01))
		fail_msg("%g is not %g", value, expected);
}

static void sums_over_processes(void **state)
{
	struct fixture f;
	init(&f);
	put(&f, 100, 5, cards[0], 1, 1000, 1024);
	put(&f, 200, 7, cards[0], 2, 5000, 512);
	put(&f, 200, 8, cards[1], 3, 0, 1);
	read_at(&f, 0);
	assert_true(f.uses[0].known);
	assert_int_equal(f.uses[0].processes, 2);
	assert_int_equal(f.uses[0].memory_bytes, 1536 * 1024);
	assert_int_equal(f.uses[0].main_memory_bytes, 1024 * 1024);
	assert_int_equal(f.uses[1].processes, 1);
	assert_int_equal(f.uses[1].main_memory_bytes, 0);
	assert_percent(f.uses[0].busy_percent, 0); // start not known yet
	put(&f, 100, 5, cards[0], 1, 1000 + 30 * NS_PER_MS, 1024);
	put(&f, 200, 7, cards[0], 2, 5000 + 20 * NS_PER_MS, 512);
	read_at(&f, 100);
	assert_percent(f.uses[0].busy_percent, 50);
	assert_percent(f.uses[1].busy_percent, 0);
	finish(&f);
}

// A child inherits the descriptor; a library opens it twice as dup.
static void an_inherited_descriptor_counts_once(void **state)
{
	struct fixture f;
	init(&f);
	put(&f, 100, 5, cards[0], 1, 0, 1024);
	put(&f, 100, 6, cards[0], 1, 0, 1024);
	put(&f, 200, 5, cards[0], 1, 0, 1024);
	read_at(&f, 0);
	assert_int_equal(f.uses[0].memory_bytes, 1024 * 1024);
	assert_int_equal(f.uses[0].processes, 2);
	finish(&f);
}

static void a_step_back_is_not_counted(void **state)
{
	struct fixture f;
	init(&f);
	put(&f, 100, 5, cards[0], 1, 100 * NS_PER_MS, 1);
	read_at(&f, 0);
	put(&f, 100, 5, cards[0], 1, 90 * NS_PER_MS, 1);
	read_at(&f, 100);
	assert_percent(f.uses[0].busy_percent, 0);
	put(&f, 100, 5, cards[0], 1, 110 * NS_PER_MS, 1);
	read_at(&f, 200);
	assert_percent(f.uses[0].busy_percent, 10);
	finish(&f);
}

static void opened_later_and_closed_again(void **state)
{
	struct fixture f;
	init(&f);
	tree_write(&f.tree, "100/fdinfo/0", "pos:\t0\n");
	tree_link(&f.tree, "100/fd/0", "/dev/null");
	read_at(&f, 0);
	assert_true(f.uses[0].known);
	assert_int_equal(f.uses[0].processes, 0);
	assert_int_equal(f.uses[0].memory_bytes, 0);
	put(&f, 100, 5, cards[0], 1, 0, 1024);
	read_at(&f, 500); // not scanned yet
	assert_int_equal(f.uses[0].processes, 0);
	read_at(&f, 1000);
	assert_int_equal(f.uses[0].processes, 1);
	tree_remove(&f.tree, "100/fdinfo/5");
	read_at(&f, 1100);
	assert_int_equal(f.uses[0].processes, 0);
	finish(&f);
}

static void of_nobody_nothing_is_known(void **state)
{
	struct fixture f;
	init(&f);
	close(f.env.procfs_fd);
	f.env.procfs_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); // ENOTDIR stands for any refusal
	read_at(&f, 0);
	assert_false(f.uses[0].known);
	finish(&f);
}

// More descriptors than one reading may scan: the scan continues in the next reading, and ends.
static void many_descriptors(void **state)
{
	struct fixture f;
	char path[64];
	init(&f);
	for (int fd = 0; fd < 1200; fd++) {
		snprintf(path, sizeof(path), "100/fdinfo/%d", fd);
		tree_write(&f.tree, path, "pos:\t0\n");
		snprintf(path, sizeof(path), "100/fd/%d", fd);
		tree_link(&f.tree, path, "/dev/null");
	}
	put(&f, 200, 9, cards[0], 1, 0, 1024);
	read_at(&f, 0);
	assert_int_equal(f.uses[0].processes, 0);
	read_at(&f, 100);
	assert_int_equal(f.uses[0].processes, 1);
	finish(&f);
}

static void users_one_by_one(void **state)
{
	struct fixture f;
	struct device_user users[4];
	static const pid_t all[] = {100, 200, 300};
	init(&f);
	put(&f, 100, 5, cards[0], 1, 0, 1024);
	put(&f, 300, 7, cards[0], 2, 0, 512); // not a process of the target
	put(&f, 300, 8, cards[1], 3, 0, 1);
	for (int64_t t_ms = 0; t_ms <= 100; t_ms += 100) {
		const struct sensor_context context = {.t_ns = t_ms * NS_PER_MS,
			.all_pids = all,
			.n_all_pids = ARRAY_SIZE(all)};
		put(&f, 300, 7, cards[0], 2, t_ms * NS_PER_MS / 4, 512);
		drm_clients_read_all(f.clients, &context);
	}
	assert_int_equal(drm_clients_users(f.clients, 0, users, ARRAY_SIZE(users)), 2);
	assert_int_equal(users[0].pid, 100);
	assert_percent(users[0].busy_percent, 0);
	assert_int_equal(users[1].pid, 300);
	assert_percent(users[1].busy_percent, 25);
	assert_int_equal(users[1].memory_bytes, 512 * 1024);
	assert_int_equal(drm_clients_users(f.clients, 1, users, ARRAY_SIZE(users)), 1);
	finish(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "use is summed over the target's processes for each card", sums_over_processes);
	ROWS_ADD_ONE(&tests, "device opened once and inherited: counted once", an_inherited_descriptor_counts_once);
	ROWS_ADD_ONE(&tests, "engine time that decreases: not counted twice", a_step_back_is_not_counted);
	ROWS_ADD_ONE(&tests, "scan for devices: once a second", opened_later_and_closed_again);
	ROWS_ADD_ONE(&tests, "unreadable descriptors: unknown", of_nobody_nothing_is_known);
	ROWS_ADD_ONE(&tests, "scan of many descriptors: takes several readings", many_descriptors);
	ROWS_ADD_ONE(&tests, "list of all processes", users_one_by_one);
	return rows_run(&tests, "drm_clients");
}
