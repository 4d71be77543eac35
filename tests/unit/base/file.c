#include "base/file.h"

#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A small tree in place of /sys, created for each test and removed after it.
struct tree {
	char path[64];
	int fd;
};

struct renames {
	int fd;
	atomic_bool started, stop;
};

static void put(const struct tree *tree, const char *name, const char *text)
{
	int fd = openat(tree->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int setup(void **state)
{
	static struct tree tree;
	strcpy(tree.path, "/tmp/wattle-file-XXXXXX");
	assert_non_null(mkdtemp(tree.path));
	tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &tree;
	put(&tree, "energy", "12345\n");
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"energy", "new", "link", "large", "fifo"};
	struct tree *tree = *state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(tree->fd, names[i], 0);
	close(tree->fd);
	assert_int_equal(rmdir(tree->path), 0);
	return 0;
}

static void reads_small_files(void **state)
{
	const struct tree *tree = *state;
	char text[32];
	uint64_t value;
	assert_int_equal(file_read_in(tree->fd, "energy", text, sizeof(text)), 6);
	assert_int_equal(file_read_line_in(tree->fd, "energy", text, sizeof(text)), 5);
	assert_string_equal(text, "12345");
	assert_int_equal(file_read_in(tree->fd, "energy", text, 4), 3); // truncated, but still terminated
	assert_string_equal(text, "123");
	assert_int_equal(file_read_u64_in(tree->fd, "energy", &value), 0);
	assert_int_equal(value, 12345);
	assert_int_equal(file_read_in(tree->fd, "nothing", text, sizeof(text)), -ENOENT);
	assert_int_equal(file_read_in(-1, "energy", text, sizeof(text)), -ENOENT);
	assert_int_equal(file_read_in(tree->fd, ".", text, sizeof(text)), -EISDIR);
}

static const struct escape_row {
	const char *teaches, *target;
} escape_rows[] = {
	{"root: a symlink to an absolute path stays inside the root", "/etc/passwd"},
	{"root: a symlink with .. stays inside the root", "../../../../../../etc/passwd"},
};

static void no_way_out(const struct tree *tree, const char *path)
{
	char text[32];
	int r = (int)file_read_in(tree->fd, path, text, sizeof(text));
	if (r >= 0 || (r != -ENOENT && r != -ELOOP && r != -EXDEV))
		fail_msg("%s led to %d", path, r);
}

static void symlinks_stay_inside(void **state)
{
	const struct tree *tree = *state;
	for (size_t i = 0; i < sizeof(escape_rows) / sizeof(escape_rows[0]); i++) {
		unlinkat(tree->fd, "link", 0);
		assert_int_equal(symlinkat(escape_rows[i].target, tree->fd, "link"), 0);
		no_way_out(tree, "link");
	}
	no_way_out(tree, "../../../../etc/passwd");
	no_way_out(tree, "/etc/passwd");
}

static void an_absolute_link_starts_at_the_root(void **state)
{
	const struct tree *tree = *state;
	uint64_t value;
	assert_int_equal(symlinkat("/energy", tree->fd, "link"), 0);
	assert_int_equal(file_read_u64_in(tree->fd, "link", &value), 0);
	assert_int_equal(value, 12345);
}

static void a_fifo_does_not_hang(void **state)
{
	const struct tree *tree = *state;
	char text[8];
	assert_int_equal(mkfifoat(tree->fd, "fifo", 0600), 0);
	assert_true(file_read_in(tree->fd, "fifo", text, sizeof(text)) <= 0);
}

static void a_whole_file_up_to_a_ceiling(void **state)
{
	enum { SIZE = 40000 };
	const struct tree *tree = *state;
	char *large = malloc(SIZE + 1);
	memset(large, 'x', SIZE);
	large[SIZE] = '\0';
	put(tree, "large", large);
	char *text = NULL;
	size_t size = 0;
	assert_int_equal(file_read_all_in(tree->fd, "large", SIZE, &text, &size), 0);
	assert_int_equal(size, SIZE);
	assert_string_equal(text, large);
	free(text);
	text = NULL;
	assert_int_equal(file_read_all_in(tree->fd, "large", SIZE - 1, &text, &size), -EFBIG);
	assert_null(text);
	free(large);
}

static void says_why_not(void **state)
{
	const struct tree *tree = *state;
	int why = 0;
	assert_true(file_readable_in(tree->fd, "energy", &why));
	assert_int_equal(why, 0);
	assert_false(file_readable_in(tree->fd, "nothing", &why));
	assert_int_equal(why, ENOENT);
}

static void rename_into_place(const struct tree *tree, const char *text)
{
	put(tree, "new", text);
	assert_int_equal(renameat(tree->fd, "new", tree->fd, "energy"), 0);
}

static void kept_files_follow_their_name(void **state)
{
	const struct tree *tree = *state;
	struct file_kept kept;
	uint64_t value;
	assert_int_equal(file_kept_open(&kept, tree->fd, "energy"), 0);
	assert_int_equal(file_kept_read_u64(&kept, &value), 0);
	put(tree, "energy", "2\n"); // overwritten in place
	assert_int_equal(file_kept_read_u64(&kept, &value), 0);
	assert_int_equal(value, 2);
	rename_into_place(tree, "3\n");
	assert_int_equal(file_kept_read_u64(&kept, &value), 0);
	assert_int_equal(value, 3);
	file_kept_close(&kept);
}

static void kept_files_come_back(void **state)
{
	const struct tree *tree = *state;
	struct file_kept kept;
	uint64_t value = 7;
	assert_int_equal(file_kept_open(&kept, tree->fd, "energy"), 0);
	unlinkat(tree->fd, "energy", 0);
	assert_int_equal(file_kept_read_u64(&kept, &value), -ENOENT);
	assert_int_equal(value, 7);
	put(tree, "energy", "9\n");
	assert_int_equal(file_kept_read_u64(&kept, &value), 0);
	assert_int_equal(value, 9);
	file_kept_close(&kept);
}

static void kept_files_may_begin_absent(void **state)
{
	const struct tree *tree = *state;
	struct file_kept kept;
	uint64_t value;
	assert_int_equal(file_kept_open(&kept, tree->fd, "new"), -ENOENT);
	put(tree, "new", "1\n");
	assert_int_equal(file_kept_read_u64(&kept, &value), 0);
	file_kept_close(&kept);
	char path[PATH_MAX];
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(file_kept_open(&kept, tree->fd, path), -ENAMETOOLONG);
	file_kept_close(&kept);
}

static void no_descriptor_is_inherited(void **state)
{
	const struct tree *tree = *state;
	int fd = file_open_in(tree->fd, "energy", O_RDONLY);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	close(fd);
}

// Renames files until stopped: in the folder of the simulated counters and in an unrelated one.
static void *rename_for_ever(void *arg)
{
	struct renames *renames = arg;
	while (!atomic_load(&renames->stop)) {
		atomic_store(&renames->started, true);
		renameat(renames->fd, "new", renames->fd, "renamed");
		renameat(renames->fd, "renamed", renames->fd, "new");
	}
	return NULL;
}

static void renames_do_not_hinder(void **state)
{
	const struct tree *tree = *state;
	struct renames renames = {.fd = tree->fd};
	pthread_t thread;
	put(tree, "new", "1\n");
	assert_int_equal(mkdirat(tree->fd, "folder", 0755), 0);
	assert_int_equal(pthread_create(&thread, NULL, rename_for_ever, &renames), 0);
	while (!atomic_load(&renames.started))
		sched_yield();
	int failed = 0;
	for (int i = 0; i < 100000; i++) { // without a second try, about 5,000 of them fail
		int fd = file_open_in(tree->fd, "folder/../folder/../energy", O_RDONLY);
		failed += fd < 0;
		if (fd >= 0)
			close(fd);
	}
	atomic_store(&renames.stop, true);
	pthread_join(thread, NULL);
	unlinkat(tree->fd, "renamed", 0);
	unlinkat(tree->fd, "folder", AT_REMOVEDIR);
	assert_int_equal(failed, 0);
}

// clang-format off
#define IN_TREE(teaches, function) {teaches, function, setup, teardown, NULL}
// clang-format on

static void a_pipe_keeps_its_writer(void **state)
{
	const struct tree *tree = *state;
	char path[PATH_MAX], head[4];
	snprintf(path, sizeof(path), "%s/pipe", tree->path);
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), writer = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(writer, "text", 4), 4);
	assert_int_equal(file_head(path, head, sizeof(head)), -EINVAL);
	assert_int_equal(read(reader, head, sizeof(head)), 4); // nothing was removed from it
	close(reader);
	close(writer);
	put(tree, "short", "ab");
	snprintf(path, sizeof(path), "%s/short", tree->path);
	assert_int_equal(file_head(path, head, sizeof(head)), 2);
	assert_int_equal(file_head(tree->path, head, sizeof(head)), -EINVAL);
	assert_int_equal(file_head("/nonexistent", head, sizeof(head)), -ENOENT);
	unlinkat(tree->fd, "pipe", 0);
	unlinkat(tree->fd, "short", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TREE("read: small files, cut ones, absent ones, folders", reads_small_files),
		IN_TREE("root: no symlink and no path leads out of it", symlinks_stay_inside),
		IN_TREE("root: an absolute symlink starts at the root", an_absolute_link_starts_at_the_root),
		IN_TREE("read: a fifo where a file should be does not hang", a_fifo_does_not_hang),
		IN_TREE("read: a whole file, and not a byte above the ceiling", a_whole_file_up_to_a_ceiling),
		IN_TREE("head: a pipe keeps its writer and its bytes; short files, folders", a_pipe_keeps_its_writer),
		IN_TREE("readable: says why not", says_why_not),
		IN_TREE("kept: written over, renamed over", kept_files_follow_their_name),
		IN_TREE("kept: a file that goes away is an error until it is back", kept_files_come_back),
		IN_TREE("kept: a file that is not there yet is found later", kept_files_may_begin_absent),
		IN_TREE("open: a path with .. in it is found while files elsewhere are renamed", renames_do_not_hinder),
		IN_TREE("open: descriptors are closed on exec", no_descriptor_is_inherited),
	};
	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
