/* Finds children: from the children files of the members' threads, or by reading the parent of every process. */
#include "process/internal.h"

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/util.h"
#include "process/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
	THREADS_KEPT = 256,    // maximum children files kept open per process; more threads wait for the next listing
	LIST_AGAIN_MS = 1000,  // interval between listings: threads may be replaced without a change of their number
	CHILDREN_SHORT = 2048, // a shorter read reached the end: seq files are returned page by page
};

struct tree_member *tree_discover(struct tree *tree, pid_t pid)
{
	if (pid <= 0 || pid == tree->own_pid || tree_is_companion(tree, pid))
		return NULL;
	struct tree_member *member = tree_find(tree, pid);
	if (member != NULL)
		return member;
	bool counted = tree->exits != NULL && exits_has_pid(tree->exits, pid); // a zombie whose exit record was processed before
	member = tree_member_add(tree, pid);
	tree->n_seen += member != NULL && !counted;
	return member;
}

static void discover_listed(struct tree *tree, const char *text, size_t size, pid_t *number)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			*number = *number * 10 + (text[i] - '0');
			continue;
		}
		tree_discover(tree, *number);
		*number = 0;
	}
}

// Reads one children file to its end.
static void read_children(struct tree *tree, int fd)
{
	pid_t number = 0; // a number may be split between two pages
	off_t at = 0;
	for (;;) {
		ssize_t n = pread(fd, tree->text, TREE_TEXT_SIZE, at);
		if (n < 0)
			return; // the thread is gone; the stat file shows whether its process is too
		discover_listed(tree, tree->text, (size_t)n, &number);
		at += n;
		if (n < CHILDREN_SHORT)
			break;
	}
	tree_discover(tree, number);
}

// -1: the name is not a number.
static pid_t parse_number(const char *name)
{
	pid_t number = 0;
	const char *c = name;
	for (; *c >= '0' && *c <= '9'; c++)
		number = number * 10 + (*c - '0');
	return c != name && *c == '\0' ? number : -1;
}

// Calls `found` for every numeric name in the folder.
static void each_number(struct tree *tree, int fd, void (*found)(struct tree *, pid_t number, void *data), void *data)
{
	struct folder_walk walk = folder_walk_begin(fd, tree->text, TREE_TEXT_SIZE);
	for (const char *name; (name = folder_walk_next(&walk, NULL)) != NULL;) {
		pid_t number = parse_number(name);
		if (number >= 0)
			found(tree, number, data);
	}
}

static void thread_listed(struct tree *tree, pid_t tid, void *data)
{
	struct tree_member *member = data;
	for (size_t i = 0; i < member->n_threads; i++) {
		if (member->threads[i].tid != tid)
			continue;
		member->threads[i].seen = tree->round;
		return;
	}
	if (member->n_threads < THREADS_KEPT)
		tree_member_add_thread(tree, member, tid);
}

// Threads other than the first may have children too. Lists the threads again when their number changes, and at a fixed
// interval.
static void list_threads(struct tree *tree, struct tree_member *member, int64_t t_ns)
{
	bool alone = member->stat.threads <= 1 && member->n_threads <= 1;
	bool same = member->stat.threads == member->listed_threads &&
		t_ns - member->listed_t_ns < LIST_AGAIN_MS * NS_PER_MS;
	if (alone || same)
		return;
	char path[32];
	snprintf(path, sizeof(path), "%d/task", member->pid);
	wattle_cleanup_close int fd = openat(tree->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	each_number(tree, fd, thread_listed, member);
	size_t kept = 0;
	for (size_t i = 0; i < member->n_threads; i++) {
		if (member->threads[i].seen == tree->round)
			member->threads[kept++] = member->threads[i];
		else if (member->threads[i].children_fd >= 0)
			close(member->threads[i].children_fd);
	}
	member->n_threads = kept;
	member->listed_threads = member->stat.threads;
	member->listed_t_ns = t_ns;
}

void tree_discover_children(struct tree *tree, size_t index, int64_t t_ns)
{
	list_threads(tree, &tree->members[index], t_ns);
	// By index, because reading may move the members.
	for (size_t i = 0; i < tree->members[index].n_threads; i++) {
		struct tree_thread *thread = &tree->members[index].threads[i];
		if (thread->children_fd >= 0) {
			read_children(tree, thread->children_fd);
			continue;
		}
		wattle_cleanup_close int fd = tree_open_children(tree, tree->members[index].pid, thread->tid);
		if (fd >= 0)
			read_children(tree, fd);
	}
}

static void candidate_found(struct tree *tree, pid_t pid, void *data)
{
	if (tree_find(tree, pid) != NULL)
		return;
	struct tree_candidate *larger = array_reserve(tree->candidates, tree->n_candidates, &tree->candidates_capacity,
		sizeof(*larger), 256);
	if (larger == NULL)
		return;
	tree->candidates = larger;
	tree->candidates[tree->n_candidates++] = (struct tree_candidate){.pid = pid};
}

// For kernels without CONFIG_PROC_CHILDREN: reads the parent of every process of the machine.
void tree_discover_by_scan(struct tree *tree)
{
	wattle_cleanup_close int fd = openat(tree->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	tree->n_candidates = 0;
	each_number(tree, fd, candidate_found, NULL);
	for (size_t i = 0; i < tree->n_candidates; i++) {
		struct process_stat stat;
		bool ok = tree_read_stat(tree, tree->candidates[i].pid, &stat) == 0;
		tree->candidates[i].ppid = ok ? stat.ppid : 0;
	}
	for (bool found = true; found;) { // repeat until no candidate has a member as parent: pids are in any order
		found = false;
		for (size_t i = 0; i < tree->n_candidates; i++) {
			struct tree_candidate *candidate = &tree->candidates[i];
			if (candidate->ppid == 0 || tree_find(tree, candidate->ppid) == NULL)
				continue;
			tree_discover(tree, candidate->pid);
			candidate->ppid = 0;
			found = true;
		}
	}
}
