/* Simulated process trees, step by step: values carried forward between readings. MB throughout. */
#include "process/memory.h"

#include "base/util.h"
#include "rows.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAIN = 100, PROCESSES = 4, STEPS = 4, PAGE = 4096 };

#define MB(n) ((n)*INT64_C(1000000))

struct process {
	int pid, ppid;
	int anonymous, file; // resident
	int faulted;         // page faults, in MB
	const char *name;    // NULL: "work"
	int private;         // result of a reading at this step
};

static const struct film {
	const char *teaches;
	struct step {
		struct process processes[PROCESSES];
		int main, descendants, combined; // carried forward to this step
		int read;                        // 1: a reading follows, which returns `private` and these:
		int main_shared, descendants_shared, combined_shared;
	} steps[STEPS];
} films[] = {
	{"no reading, single process: its resident memory", {{{{MAIN, 1, 90, 10}}, 100, 0, 100}}},
	{"forked child not read yet: shares all its parent's memory",
		{{{{MAIN, 1, 500, 1}}, 501, 0, 501}, {{{MAIN, 1, 500, 1}, {101, MAIN, 500, 1}}, 501, 501, 501}}},
	{"RSS eight times as large in two children: still the same memory",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0}, {102, MAIN, 500, 0}}, 500, 500, 500}}},
	{"parent frees memory that an unread child shares: the child keeps it",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0}}, 500, 500, 500},
			{{{MAIN, 1, 20, 0}, {101, MAIN, 500, 0}}, 20, 500, 500}}},
	{"new child larger than its parent: the rest is private",
		{{{{MAIN, 1, 100, 0}}, 100, 0, 100}, {{{MAIN, 1, 100, 0}, {101, MAIN, 130, 0}}, 100, 130, 130}}},
	{"memory allocated since the reading: private",
		{{{{MAIN, 1, 70, 30, 0, NULL, 70}}, 100, 0, 100, 1, 30, 0, 30}, {{{MAIN, 1, 120, 30}}, 150, 0, 150}}},
	{"memory freed since the reading: removed",
		{{{{MAIN, 1, 70, 30, 0, NULL, 70}}, 100, 0, 100, 1, 30, 0, 30}, {{{MAIN, 1, 20, 30}}, 50, 0, 50}}},
	{"parent and child as read; the child allocates 20",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0, 0, NULL, 0}}, 500, 500, 500, 1, 500, 500, 500},
			{{{MAIN, 1, 500, 0}, {101, MAIN, 520, 0, 0}}, 500, 520, 520}}},
	{"segment filled by the parent and mapped by children: counted once",
		{{{{MAIN, 1, 1, 400, 0, NULL, 401}}, 401, 0, 401, 1, 0, 0, 0},
			{{{MAIN, 1, 1, 400}, {101, MAIN, 1, 400}, {102, MAIN, 1, 400}}, 401, 401, 401}}},
	{"segment that grows in all processes: counted once",
		{{{{MAIN, 1, 1, 100, 0, NULL, 1}, {101, MAIN, 1, 100, 0, NULL, 1}}, 101, 101, 101, 1, 100, 100, 100},
			{{{MAIN, 1, 1, 300}, {101, MAIN, 1, 300}}, 301, 301, 302}}},
	{"children ended: the parent keeps the shared memory",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0, 0, NULL, 20}}, 500, 500, 500, 1, 480, 480, 480},
			{{{MAIN, 1, 500, 0}}, 480, 0, 480}}},
	{"copy on write, not visible in RSS: after some are read, page faults predict the others",
		{{{{MAIN, 1, 200, 0}, {101, MAIN, 200, 0}, {102, MAIN, 200, 0}}, 200, 200, 200},
			{{{MAIN, 1, 200, 0}, {101, MAIN, 200, 0, 100, NULL, 100}}, 200, 200, 200, 1, 200, 100, 200},
			{{{MAIN, 1, 200, 0}, {101, MAIN, 200, 0, 100}, {103, MAIN, 200, 0, 50}}, 200, 300, 350}}},
	{"page faults of a process that was not forked: ignored",
		{{{{MAIN, 1, 200, 0, 300, NULL, 200}}, 200, 0, 200, 1, 0, 0, 0},
			{{{MAIN, 1, 200, 0, 900}}, 200, 0, 200}}},
	{"exec in the child: its memory is its own, whatever its parent has",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0}}, 500, 500, 500},
			{{{MAIN, 1, 500, 0}, {101, 999, 80, 0, 0, "other"}}, 500, 80, 580}}},
	{"exec of a program with the same name: less than half of the inherited memory",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0}}, 500, 500, 500},
			{{{MAIN, 1, 500, 0}, {101, 999, 80, 0}}, 500, 80, 580}}},
	{"forked child that frees most inherited memory, then allocates",
		{{{{MAIN, 1, 500, 0}, {101, MAIN, 500, 0}}, 500, 500, 500},
			{{{MAIN, 1, 500, 0}, {101, MAIN, 100, 0}}, 500, 100, 500},
			{{{MAIN, 1, 500, 0}, {101, MAIN, 300, 0}}, 500, 300, 700}}},
	{"no process: unknown, not 0", {{{{0}}, -1, -1, -1}}},
};

static void put(struct tree *tree, const struct process *processes)
{
	tree->n_members = 0;
	for (size_t i = 0; i < PROCESSES && processes[i].pid != 0; i++) {
		const struct process *made = &processes[i];
		struct tree_member *member = &tree->members[tree->n_members], *old = member;
		while (old < tree->members + PROCESSES && old->pid != made->pid)
			old++;
		struct tree_member_memory memory = old < tree->members + PROCESSES ? old->memory
										   : (struct tree_member_memory){0};
		*member = (struct tree_member){.pid = made->pid,
			.is_main = made->pid == MAIN,
			.alive = true,
			.readable = true,
			.stat_fd = -1,
			.memory = memory,
			.stat = {.state = 'S',
				.ppid = made->ppid,
				.rss_bytes = MB(made->anonymous + made->file),
				.file_bytes = MB(made->file),
				.minor_faults = MB(made->faulted) / PAGE}};
		strcpy(member->stat.name, made->name != NULL ? made->name : "work");
		tree->n_members++;
	}
	memset(tree->table, -1, tree->table_size * sizeof(*tree->table));
	for (size_t i = 0; i < tree->n_members; i++) // as tree_index
		for (size_t slot = ((size_t)tree->members[i].pid * 2654435761u) & (tree->table_size - 1);;
			slot = (slot + 1) & (tree->table_size - 1))
			if (tree->table[slot] < 0) {
				tree->table[slot] = (int32_t)i;
				break;
			}
}

static void read_all(struct memory_estimate *estimate, struct tree *tree, const struct step *step)
{
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct process *made = &step->processes[i];
		memory_member_read(&tree->members[i], MB(made->private), MB(made->anonymous), MB(made->file));
	}
	const struct memory_shared shared = {MB(step->main_shared), MB(step->descendants_shared),
		MB(step->combined_shared)};
	memory_estimate_apply_reading(estimate, tree, &shared, true);
}

// Page faults are whole pages.
static void assert_mb(int64_t bytes, int mb)
{
	if (mb < 0)
		assert_int_equal(bytes, VALUE_MISSING);
	else
		assert_true(llabs(bytes - MB(mb)) < 10000);
}

struct stage {
	struct tree_member members[PROCESSES];
	int32_t table[64];
	struct wattle_env env;
};

static struct tree tree_on(struct stage *stage, int procfs_fd)
{
	return (struct tree){.env = &stage->env,
		.procfs_fd = procfs_fd,
		.main_pid = MAIN,
		.members = stage->members,
		.table = stage->table,
		.table_size = ARRAY_SIZE(stage->table),
		.units = {.page_bytes = PAGE}};
}

static void check(void **state)
{
	const struct film *film = *state;
	struct stage stage = {0};
	struct tree tree = tree_on(&stage, -1);
	struct memory_estimate estimate = {0};
	for (size_t i = 0; i < STEPS; i++) {
		const struct step *step = &film->steps[i];
		if (i > 0 && step->processes[0].pid == 0)
			break;
		put(&tree, step->processes);
		memory_estimate_update(&estimate, &tree);
		assert_mb(estimate.carried.main_bytes, step->main);
		assert_mb(estimate.carried.descendants_bytes, step->descendants);
		assert_mb(estimate.carried.combined_bytes, step->combined);
		if (step->read)
			read_all(&estimate, &tree, step);
	}
}

/* ---- processes whose files are unreadable ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int open_procfs(char *root)
{
	assert_non_null(mkdtemp(root));
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void add_file(int procfs_fd, int pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "%d", pid);
	mkdirat(procfs_fd, path, 0755);
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	int fd = openat(procfs_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

#define SMAPS(kb) "1000-2000 rw-p 00000000 00:00 0 \nRss: " kb " kB\nPrivate_Dirty: " kb " kB\nAnonymous: " kb " kB\n"

static const struct process pair[PROCESSES] = {{MAIN, 1, 100, 0}, {101, 999, 300, 0}};

static void page_maps_that_cannot_be_read(void **state)
{
	(void)state;
	char root[] = "/tmp/wattle-memory-XXXXXX";
	int procfs_fd = open_procfs(root);
	struct stage stage = {0};
	struct tree tree = tree_on(&stage, procfs_fd);
	struct memory_estimate estimate = {0};
	struct memory_reader reader;
	struct memory_reading reading;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	put(&tree, pair);
	memory_estimate_update(&estimate, &tree);
	assert_true(memory_sample_due(&reader, &estimate, 0));
	assert_false(memory_sample_read(&reader, &estimate, &tree, 0, &reading));
	assert_true(stage.members[0].memory.is_denied && stage.members[1].memory.is_denied);
	for (int64_t t_ns = NS_PER_S; t_ns < 10 * NS_PER_S; t_ns += NS_PER_S) {
		memory_estimate_update(&estimate, &tree);
		assert_false(memory_sample_due(&reader, &estimate, t_ns));
		assert_mb(estimate.carried.combined_bytes, 400);
	}
	strcpy(stage.members[1].stat.name, "other"); // an exec
	memory_estimate_update(&estimate, &tree);
	assert_true(memory_sample_due(&reader, &estimate, 20 * NS_PER_S));
	memory_reader_close(&reader);
	close(procfs_fd);
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* smaps of the root and of one child; the other child, with 300 MB of its own, belongs to another user. */
static void one_child_unread(void **state)
{
	(void)state;
	static const struct process family[PROCESSES] = {{MAIN, 1, 100, 0}, {101, 999, 200, 0}, {102, 999, 300, 0}};
	static const struct tree_totals totals = {.main_rss_bytes = MB(100),
		.descendants_rss_bytes = MB(500),
		.processes = 3};
	char root[] = "/tmp/wattle-memory-XXXXXX";
	int procfs_fd = open_procfs(root);
	add_file(procfs_fd, MAIN, "smaps", SMAPS("97656"));
	add_file(procfs_fd, 101, "smaps", SMAPS("195312"));
	assert_int_equal(mkdirat(procfs_fd, "102", 0755), 0);
	assert_int_equal(symlinkat("smaps", procfs_fd, "102/smaps"), 0); // ELOOP: root may open all other files
	struct stage stage = {0};
	struct tree tree = tree_on(&stage, procfs_fd);
	struct memory_estimate estimate = {0};
	struct memory_reader reader;
	struct memory_reading reading;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	put(&tree, family);
	memory_estimate_update(&estimate, &tree);
	assert_mb(estimate.carried.combined_bytes, 600);
	assert_true(memory_read_if_due(&reader, &estimate, &tree, 0, &totals, &reading));
	assert_mb(reading.main.private_bytes, 100);
	assert_mb(reading.descendants.private_bytes, 500);
	assert_mb(reading.combined_shared_bytes, 0);
	memory_reader_close(&reader);
	close(procfs_fd);
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, films, check);
	ROWS_ADD_ONE(&rows, "unreadable page maps: tried once, and again after an exec",
		page_maps_that_cannot_be_read);
	ROWS_ADD_ONE(&rows, "two children, one unreadable: the sum contains its estimate",
		one_child_unread);
	return rows_run(&rows, "RAM carried forward");
}
