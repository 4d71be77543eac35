/* Members of the tree: the table of living pids, and reading one process. */
#include "process/internal.h"

#include "base/util.h"
#include "process/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

pid_t tree_pid(const struct tree *tree, pid_t pid)
{
	return tree->is_foreign ? proc_pid(tree->procfs_fd, pid) : pid;
}

bool tree_is_companion(const struct tree *tree, pid_t pid)
{
	const struct companion *companion = tree->env->companion;
	if (companion == NULL || companion->pid == 0)
		return false;
	if (!tree->is_foreign)
		return companion_is(companion, pid);
	return pid == tree_pid(tree, companion->pid);
}

static size_t slot_of(const struct tree *tree, pid_t pid)
{
	size_t mask = tree->table_size - 1;
	size_t slot = ((size_t)pid * 2654435761u) & mask;
	while (tree->table[slot] >= 0 && tree->members[tree->table[slot]].pid != pid)
		slot = (slot + 1) & mask;
	return slot;
}

void tree_index(struct tree *tree)
{
	memset(tree->table, -1, tree->table_size * sizeof(*tree->table));
	for (size_t i = 0; i < tree->n_members; i++) {
		if (tree->members[i].alive)
			tree->table[slot_of(tree, tree->members[i].pid)] = (int32_t)i;
	}
}

int tree_reserve(struct tree *tree, size_t members)
{
	size_t size = tree->table_size > 0 ? tree->table_size : 256;
	while (size < members * 2)
		size *= 2;
	if (size == tree->table_size)
		return 0;
	int32_t *table = realloc_array(tree->table, size, sizeof(*table));
	if (table == NULL)
		return -ENOMEM;
	tree->table = table;
	tree->table_size = size;
	tree_index(tree);
	return 0;
}

struct tree_member *tree_find(struct tree *tree, pid_t pid)
{
	int32_t index = tree->table[slot_of(tree, pid)];
	if (index < 0 || !tree->members[index].alive)
		return NULL;
	return &tree->members[index];
}

void tree_member_release(struct tree_member *member)
{
	if (member->stat_fd >= 0)
		close(member->stat_fd);
	if (member->statm_fd >= 0)
		close(member->statm_fd);
	member->stat_fd = member->statm_fd = -1;
	for (size_t i = 0; i < member->n_threads; i++)
		if (member->threads[i].children_fd >= 0)
			close(member->threads[i].children_fd);
	free(member->threads);
	member->threads = NULL;
	member->n_threads = member->threads_capacity = 0;
}

int tree_open_children(const struct tree *tree, pid_t pid, pid_t tid)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/task/%d/children", pid, tid);
	return openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
}

/* Files of the real /proc are kept open. Files of a test tree are opened each time: a removed or replaced file on disk
 * stays readable through an open descriptor and never gives ESRCH. */
static int keep(const struct tree *tree, int fd)
{
	if (!tree->env->procfs_replaced || fd < 0)
		return fd;
	close(fd);
	return -1;
}

int tree_member_add_thread(struct tree *tree, struct tree_member *member, pid_t tid)
{
	struct tree_thread *threads = array_reserve(member->threads, member->n_threads, &member->threads_capacity,
		sizeof(*threads), 1);
	if (threads == NULL)
		return -ENOMEM;
	member->threads = threads;
	member->threads[member->n_threads++] = (struct tree_thread){.tid = tid,
		.children_fd = keep(tree, tree_open_children(tree, member->pid, tid)),
		.seen = tree->round};
	return 0;
}

// Opens a file of a process; -ESRCH: the process is certainly gone.
static int open_file(const struct tree *tree, pid_t pid, const char *name)
{
	char path[40];
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	int fd = openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

// Reads the file; returns its size or negative errno.
static ssize_t file_text(const struct tree *tree, pid_t pid, const char *name, int kept_fd, char *text, size_t size)
{
	int fd = kept_fd >= 0 ? kept_fd : open_file(tree, pid, name);
	if (fd < 0)
		return fd;
	ssize_t n = pread(fd, text, size, 0);
	int code = errno;
	if (fd != kept_fd)
		close(fd);
	return n < 0 ? -code : n;
}

int tree_read_stat(const struct tree *tree, pid_t pid, struct process_stat *ret_stat)
{
	char text[1024];
	ssize_t n = file_text(tree, pid, "stat", -1, text, sizeof(text));
	return n < 0 ? (int)n : process_stat_parse(text, (size_t)n, &tree->units, ret_stat);
}

// The number after a blank; 0: none. strtoll takes 140 instructions, and this runs for each process at each sample.
static uint64_t next_number(const char **at)
{
	uint64_t number = 0; // overflows only for numbers above 64 bits, which the kernel does not write
	const char *c = *at + (**at == ' ');
	for (; *c >= '0' && *c <= '9'; c++)
		number = number * 10 + (uint64_t)(*c - '0');
	*at = c;
	return number;
}

/* Reads the second and third numbers of statm. The rss in stat is a sum that each CPU updates only occasionally: since
 * Linux 6.2 it may be off by 64 pages or more per CPU, which hides small processes completely. statm adds what the CPUs
 * still hold (6.16) and is never less accurate. It costs a third of reading stat. */
static void read_rss(const struct tree *tree, const struct tree_member *member, struct process_stat *stat)
{
	char text[128];
	ssize_t n = file_text(tree, member->pid, "statm", member->statm_fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	const char *at = strchr(text, ' ');
	if (at == NULL || at[1] < '0' || at[1] > '9')
		return;
	uint64_t page_bytes = (uint64_t)tree->units.page_bytes;
	stat->rss_bytes = (int64_t)(next_number(&at) * page_bytes);
	stat->file_bytes = (int64_t)(next_number(&at) * page_bytes);
}

void tree_member_read_rss(const struct tree *tree, struct tree_member *member)
{
	read_rss(tree, member, &member->stat);
}

bool tree_member_has_forked(const struct tree *tree, const struct tree_member *child, const struct tree_member *parent)
{
	char text[1024];
	ssize_t n = file_text(tree, child->pid, "stat", child->stat_fd, text, sizeof(text));
	uint64_t of_child = n > 0 ? process_stat_start_stack(text, (size_t)n) : 0;
	n = file_text(tree, parent->pid, "stat", parent->stat_fd, text, sizeof(text));
	uint64_t of_parent = n > 0 ? process_stat_start_stack(text, (size_t)n) : 0;
	return of_child == of_parent || of_child <= 1 || of_parent <= 1; // 0 or 1: the kernel hides the address
}

// 0 or negative errno; -ESRCH: gone, or the pid is another process by now.
int tree_member_read(const struct tree *tree, struct tree_member *member)
{
	char text[1024];
	struct process_stat stat;
	ssize_t n = file_text(tree, member->pid, "stat", member->stat_fd, text, sizeof(text));
	int r = n < 0 ? (int)n : process_stat_parse(text, (size_t)n, &tree->units, &stat);
	member->readable = r == 0;
	if (r < 0)
		return r;
	if (member->sampled && stat.start_ticks != member->stat.start_ticks)
		return -ESRCH;
	read_rss(tree, member, &stat);
	member->stat = stat;
	member->sampled = true;
	if (stat.rss_bytes > member->max_rss_bytes)
		member->max_rss_bytes = stat.rss_bytes;
	return 0;
}

struct tree_member *tree_member_add(struct tree *tree, pid_t pid)
{
	struct tree_member *members = array_reserve(tree->members, tree->n_members, &tree->capacity, sizeof(*members),
		64);
	if (members == NULL)
		return NULL;
	tree->members = members;
	if (tree_reserve(tree, tree->n_members + 1) < 0)
		return NULL;
	size_t slot = slot_of(tree, pid);
	struct tree_member *member = &tree->members[tree->n_members];
	*member = (struct tree_member){
		.pid = pid,
		.alive = true,
		.stat_fd = keep(tree, open_file(tree, pid, "stat")),
		.statm_fd = keep(tree, open_file(tree, pid, "statm")),
		.end_ns = VALUE_MISSING,
	};
	tree->table[slot] = (int32_t)tree->n_members++;
	if (tree->has_children_files)
		tree_member_add_thread(tree, member, pid);
	tree->changed = true;
	return member;
}
