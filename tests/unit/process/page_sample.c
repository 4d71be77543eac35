/* Private and shared memory from a sample of a page map: its steps, and real processes with known memory. */
#include "process/memory.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, TEXT_SIZE = 65536 };

static const struct line {
	const char *teaches, *text;
	uint64_t first_page, n_pages;
	bool is_memory;
} lines[] = {
	{"anonymous memory", "7f0000001000-7f0000003000 rw-p 00000000 00:00 0 ", 0x7f0000001, 2, true},
	{"a library", "7f0000001000-7f0000002000 r-xp 00000000 fe:00 12      /usr/lib/libc.so.6", 0x7f0000001, 1, true},
	{"reserved address space: no pages", "7f0000000000-7f4000000000 ---p 00000000 00:00 0 ", 0x7f0000000,
		0x4000000, false},
	{"device registers: no memory", "1000-2000 rw-s 00000000 00:05 9 /dev/nvidia0", 1, 1, false},
	{"mappings of the kernel for the clock: no memory", "1000-2000 r--p 00000000 00:00 0 [vvar]", 1, 1, false},
	{"POSIX shared memory: memory", "1000-2000 rw-s 00000000 00:19 9 /dev/shm/x y", 1, 1, true},
	{"shared anonymous memory: memory", "1000-2000 rw-s 00000000 00:01 9 /dev/zero (deleted)", 1, 1, true},
	{"huge pages: counted separately", "200000-400000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)", 0x200, 0x200,
		false},
	{"no mapping", "VmFlags: rd ex", 0, 0, false},
	{"truncated line: refused", "7f0000001000-7f000", 0, 0, false},
	{"end before its beginning: refused", "3000-2000 rw-p 00000000 00:00 0 ", 0, 0, false},
	{"empty line", "", 0, 0, false},
};

static void check_line(void **state)
{
	const struct line *row = *state;
	struct page_range range = page_range_parse(row->text, strlen(row->text), PAGE);
	assert_int_equal(range.first_page, row->first_page);
	assert_int_equal(range.n_pages, row->n_pages);
	assert_int_equal(range.is_readable_memory, row->is_memory);
}

/* One anonymous mapping as sampled; how many of statm's pages are private and shared. */
static const struct scaled {
	const char *teaches;
	double exclusive, shared;
	int64_t resident, expected_private, expected_shared;
} scales[] = {
	{"sample equals statm", 600, 400, 1000, 600, 400},
	{"sample misses a tenth: both parts are scaled up", 540, 360, 1000, 600, 400},
	{"sample exceeds statm: the repeated zero page looks shared and is no memory", 600, 900, 1000,
		600, 400},
	{"more exclusive pages than statm: the sample is scaled down", 1100, 0, 1000, 1000, 0},
	{"empty sample: all pages are private", 0, 0, 50, 50, 0},
	{"no memory", 0, 0, 0, 0, 0},
};

static void check_scale(void **state)
{
	const struct scaled *row = *state;
	struct page_area area = {.exclusive = {row->exclusive}, .shared = {row->shared}};
	struct page_sample sample = {.areas = &area,
		.n_areas = 1,
		.exclusive = {row->exclusive},
		.shared = {row->shared}};
	int64_t private_bytes = page_sample_private(&sample, row->resident * PAGE, 0, PAGE);
	assert_true(llabs(private_bytes - row->expected_private * PAGE) <= PAGE);
	assert_true(llabs(page_sample_shared(&area, PAGE) - row->expected_shared * PAGE) <= PAGE);
}

/* A forked child that writes to a part of 64 MB of inherited memory. */
enum { FORKED_MB = 64 };
static const struct forked {
	const char *teaches;
	int from, every, of; // pages: from there on `every` of each `of`
	int private_mb;
} forks[] = {
	{"child writes nothing: no private memory", 0, 0, 1, 0},
	{"child writes all", 0, 1, 1, 64},
	{"child writes the second half", 8192, 1, 1, 32},
	{"child writes one page in four", 0, 1, 4, 16},
	{"child writes runs as long as those of the sample", 0, 16, 64, 16},
};

static pid_t fork_writer(const struct forked *row, char *memory)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = row->from; i < (FORKED_MB << 20) / PAGE; i++)
			if (i % row->of < row->every)
				memory[(size_t)i * PAGE] = 2;
		_exit(write(ready[1], "r", 1) == 1 ? pause() : 3);
	}
	char letter;
	assert_int_equal(read(ready[0], &letter, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void check_fork(void **state)
{
	const struct forked *row = *state;
	static char text[TEXT_SIZE];
	struct wattle_env env;
	struct tree tree;
	struct page_sample sample;
	char *memory = mmap(NULL, FORKED_MB << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	madvise(memory, FORKED_MB << 20, MADV_NOHUGEPAGE); // a huge page is copied as a whole
	memset(memory, 1, FORKED_MB << 20);
	assert_int_equal(env_open(&env, NULL), 0);
	pid_t pid = fork_writer(row, memory);
	int r = tree_open(&tree, &env, pid, 0);
	if (r == 0)
		r = page_sample_open(&sample);
	if (r == 0)
		r = page_sample_read(&sample, &tree, &tree.members[0], 64, text, sizeof(text));
	tree_member_read_rss(&tree, &tree.members[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(memory, FORKED_MB << 20);
	assert_int_equal(r, 0);
	int64_t file_bytes = tree.members[0].stat.file_bytes, rss_bytes = tree.members[0].stat.rss_bytes;
	int64_t bytes = page_sample_private(&sample, rss_bytes - file_bytes, file_bytes, PAGE);
	assert_true(llabs(bytes - ((int64_t)row->private_mb << 20)) < 8 << 20); // libraries of the test, and chance
	page_sample_close(&sample);
	tree_close(&tree);
	env_close(&env);
}

// A child of MAPPINGS small mappings shared with its parent, except for the second half, which it has written.
static pid_t fork_many_mappings(char *memory, size_t n_mappings)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = n_mappings / 2; i < n_mappings; i++)
			memory[2 * i * PAGE] = 2;
		_exit(write(ready[1], "r", 1) == 1 ? pause() : 3);
	}
	char letter;
	assert_int_equal(read(ready[0], &letter, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void many_small_mappings(void **state)
{
	enum { MAPPINGS = 3900, READ_MAX = 2000 }; // and as many between them without memory
	static char text[TEXT_SIZE];
	struct wattle_env env;
	struct tree tree;
	struct page_sample sample;
	char *memory = mmap(NULL, 2 * (size_t)MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	for (size_t i = 0; i < MAPPINGS; i++) {
		assert_int_equal(mprotect(memory + 2 * i * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
		memory[2 * i * PAGE] = 1;
	}
	assert_int_equal(env_open(&env, NULL), 0);
	pid_t pid = fork_many_mappings(memory, MAPPINGS);
	assert_int_equal(tree_open(&tree, &env, pid, 0), 0);
	assert_int_equal(page_sample_open(&sample), 0);
	int r = page_sample_read(&sample, &tree, &tree.members[0], 64, text, sizeof(text));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(memory, 2 * (size_t)MAPPINGS * PAGE);
	assert_int_equal(r, 0);
	assert_true(sample.n_areas < READ_MAX);
	double mappings = sample.shared[PAGE_ANONYMOUS] + sample.exclusive[PAGE_ANONYMOUS];
	assert_true(mappings > MAPPINGS); // the sample represents all, beside the test's own memory
	double written = sample.exclusive[PAGE_ANONYMOUS];
	assert_true(fabs(written - MAPPINGS / 2.0) < 0.3 * MAPPINGS);
	page_sample_close(&sample);
	tree_close(&tree);
	env_close(&env);
}

static void too_many_mappings(void **state)
{
	(void)state;
	enum { MAPPINGS = 10000 };
	static char text[TEXT_SIZE];
	struct wattle_env env;
	struct tree tree;
	struct page_sample sample;
	char *memory = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	for (size_t i = 0; i < MAPPINGS; i += 2) // neighbours with other permissions stay separate mappings
		assert_int_equal(mprotect(memory + i * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(env_open(&env, NULL), 0);
	assert_int_equal(tree_open(&tree, &env, getpid(), 0), 0);
	assert_int_equal(page_sample_open(&sample), 0);
	int r = page_sample_read(&sample, &tree, &tree.members[0], 64, text, sizeof(text));
	munmap(memory, (size_t)MAPPINGS * PAGE);
	assert_int_equal(r, -E2BIG);
	page_sample_close(&sample);
	tree_close(&tree);
	env_close(&env);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, lines, check_line);
	ROWS_ADD(&rows, scales, check_scale);
	ROWS_ADD(&rows, forks, check_fork);
	ROWS_ADD_ONE(&rows, "7800 small mappings: a quarter is read and represents all", many_small_mappings);
	ROWS_ADD_ONE(&rows, "process of 10,000 mappings: too expensive to sample", too_many_mappings);
	return rows_run(&rows, "page sample");
}
