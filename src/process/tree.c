#include "process/tree.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"
#include "process/exits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	TEXT_SIZE = 65536,
	THREADS_KEPT = 256,     // children files kept open per process; the rest of the threads wait for the next list
	LIST_AGAIN_MS = 1000,   // threads may have been replaced one for one, so that their number tells nothing
	CHILDREN_SHORT = 2048,  // a read shorter than this met the end: seq files are given out by the page
};

struct tree_candidate { // fallback scan: a process of the machine that is no member yet
	pid_t pid, ppid;
};

/* ---- the table of living pids ---- */

static size_t slot_of(const struct tree *tree, pid_t pid)
{
	size_t mask = tree->table_size - 1;
	size_t slot = ((size_t)pid * 2654435761u) & mask;
	while (tree->table[slot] >= 0 && tree->members[tree->table[slot]].pid != pid)
		slot = (slot + 1) & mask;
	return slot;
}

static void table_fill(struct tree *tree)
{
	memset(tree->table, -1, tree->table_size * sizeof(*tree->table));
	for (size_t i = 0; i < tree->n_members; i++) {
		if (tree->members[i].alive)
			tree->table[slot_of(tree, tree->members[i].pid)] = (int32_t)i;
	}
}

static int table_reserve(struct tree *tree, size_t members)
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
	table_fill(tree);
	return 0;
}

struct tree_member *tree_find(struct tree *tree, pid_t pid)
{
	int32_t index = tree->table[slot_of(tree, pid)];
	if (index < 0 || !tree->members[index].alive)
		return NULL;
	return &tree->members[index];
}

/* ---- one member ---- */

static void member_release(struct tree_member *member)
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

static int open_children(const struct tree *tree, pid_t pid, pid_t tid)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/task/%d/children", pid, tid);
	return openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
}

/* Files of the real /proc are kept open. Those of a made tree are opened each time: a file on disk that was removed
 * or renamed over stays readable for ever, and never gives ESRCH. */
static int keep(const struct tree *tree, int fd)
{
	if (!tree->env->procfs_replaced || fd < 0)
		return fd;
	close(fd);
	return -1;
}

static int member_add_thread(struct tree *tree, struct tree_member *member, pid_t tid)
{
	if (member->n_threads == member->threads_capacity) {
		size_t capacity = member->threads_capacity > 0 ? member->threads_capacity * 4 : 1;
		struct tree_thread *threads = realloc_array(member->threads, capacity, sizeof(*threads));
		if (threads == NULL)
			return -ENOMEM;
		member->threads = threads;
		member->threads_capacity = capacity;
	}
	member->threads[member->n_threads++] = (struct tree_thread){
		.tid = tid, .children_fd = keep(tree, open_children(tree, member->pid, tid)), .seen = tree->round};
	return 0;
}

// Opens a file of a process; -ESRCH: the process is gone for sure.
static int open_file(const struct tree *tree, pid_t pid, const char *name)
{
	char path[40];
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	int fd = openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

// Text of the file or negative errno.
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

/* The second number of statm. The rss of stat is a sum that each CPU brings up to date only now and then: since Linux
 * 6.2 it may be off by 64 pages per CPU and more, which hides small processes altogether; statm adds up what the CPUs
 * still hold (6.16), and never is the worse of the two. It costs a third of reading stat. */
static void read_rss(const struct tree *tree, const struct tree_member *member, struct process_stat *stat)
{
	char text[128];
	ssize_t n = file_text(tree, member->pid, "statm", member->statm_fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	const char *blank = strchr(text, ' ');
	if (blank != NULL && blank[1] >= '0' && blank[1] <= '9')
		stat->rss_bytes = strtoll(blank + 1, NULL, 10) * tree->units.page_bytes;
}

// 0 or negative errno; -ESRCH: gone, or the pid is another process by now.
static int member_read(const struct tree *tree, struct tree_member *member)
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

static struct tree_member *member_add(struct tree *tree, pid_t pid)
{
	if (tree->n_members == tree->capacity) {
		size_t capacity = tree->capacity > 0 ? tree->capacity * 2 : 64;
		struct tree_member *members = realloc_array(tree->members, capacity, sizeof(*members));
		if (members == NULL)
			return NULL;
		tree->members = members;
		tree->capacity = capacity;
	}
	if (table_reserve(tree, tree->n_members + 1) < 0)
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
		member_add_thread(tree, member, pid);
	tree->changed = true;
	return member;
}

/* ---- CPU time ---- */

// What it used since the recorder came, its children's and vanished children's time included.
static int64_t member_cpu_ns(const struct tree *tree, const struct tree_member *member)
{
	int64_t waited_ns =
		member->is_reaper ? tree->reaped_ns : member->stat.children_ns - member->base_children_ns;
	int64_t children_ns = waited_ns > member->gone_children_ns ? waited_ns : member->gone_children_ns;
	int64_t own_ns = member->is_reaper ? 0 : member->stat.own_ns - member->base_own_ns;
	return own_ns + children_ns;
}

void tree_cpu(const struct tree *tree, int64_t *ret_main_ns, int64_t *ret_descendants_ns)
{
	int64_t total_ns = tree->orphan_ns;
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive)
			total_ns += member_cpu_ns(tree, &tree->members[i]);
	*ret_main_ns = tree->main_own_ns;
	*ret_descendants_ns = total_ns > tree->main_own_ns ? total_ns - tree->main_own_ns : 0;
}

// The nearest ancestor that lives, through ancestors that ended in this very round; NULL if there is none.
static struct tree_member *living_ancestor(struct tree *tree, const struct tree_member *member)
{
	pid_t pid = member->stat.ppid;
	for (int depth = 0; depth < 64; depth++) {
		struct tree_member *parent = tree_find(tree, pid);
		if (parent != NULL)
			return parent;
		size_t i = tree->n_members;
		while (i > 0 && tree->members[i - 1].pid != pid)
			i--;
		if (i == 0)
			break;
		pid = tree->members[i - 1].stat.ppid;
	}
	return tree->n_members > 0 && tree->members[0].is_reaper ? &tree->members[0] : NULL;
}

static void member_end(struct tree *tree, struct tree_member *member, int64_t t_ns)
{
	int64_t cpu_ns = member_cpu_ns(tree, member);
	member->alive = false;
	member->end_ns = t_ns;
	tree->changed = true;
	member_release(member);
	struct tree_member *heir = living_ancestor(tree, member);
	if (heir == NULL) {
		tree->orphan_ns += cpu_ns;
		return;
	}
	heir->gone_children_ns += cpu_ns;
	// The heir is left the whole of its time, also what it had used before the recorder came.
	heir->base_children_ns += member->base_own_ns + member->base_children_ns;
}

/* ---- discovery ---- */

static void discover(struct tree *tree, pid_t pid)
{
	if (pid <= 0 || tree_find(tree, pid) != NULL)
		return;
	bool counted = tree->exits != NULL && exits_has_pid(tree->exits, pid); // a zombie whose record came first
	if (member_add(tree, pid) != NULL && !counted)
		tree->n_seen++;
}

static void discover_listed(struct tree *tree, const char *text, size_t size, pid_t *number)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			*number = *number * 10 + (text[i] - '0');
			continue;
		}
		discover(tree, *number);
		*number = 0;
	}
}

// Reads one children file to its end.
static void read_children(struct tree *tree, int fd)
{
	pid_t number = 0; // may run on from one page to the next
	off_t at = 0;
	for (;;) {
		ssize_t n = pread(fd, tree->text, TEXT_SIZE, at);
		if (n < 0)
			return; // the thread is gone; its process is noticed by its stat file
		discover_listed(tree, tree->text, (size_t)n, &number);
		at += n;
		if (n < CHILDREN_SHORT)
			break;
	}
	discover(tree, number);
}

struct entry { // struct linux_dirent64
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	unsigned char type;
	char name[];
};

// Calls `found` with every number that is a name in the folder. No allocation, unlike readdir.
static void each_number(
	struct tree *tree, int fd, void (*found)(struct tree *, pid_t number, void *data), void *data)
{
	for (;;) {
		long n = syscall(SYS_getdents64, fd, tree->text, TEXT_SIZE);
		if (n <= 0)
			return;
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(const void *)(tree->text + at);
			at += entry->size;
			pid_t number = 0;
			const char *c = entry->name;
			for (; *c >= '0' && *c <= '9'; c++)
				number = number * 10 + (*c - '0');
			if (c != entry->name && *c == '\0')
				found(tree, number, data);
		}
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
		member_add_thread(tree, member, tid);
}

// A thread other than the first may have children too. Lists them again when their number changed, and now and then.
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

static void discover_children(struct tree *tree, size_t index, int64_t t_ns)
{
	list_threads(tree, &tree->members[index], t_ns);
	// By index: reading may move the members.
	for (size_t i = 0; i < tree->members[index].n_threads; i++) {
		struct tree_thread *thread = &tree->members[index].threads[i];
		if (thread->children_fd >= 0) {
			read_children(tree, thread->children_fd);
			continue;
		}
		wattle_cleanup_close int fd = open_children(tree, tree->members[index].pid, thread->tid);
		if (fd >= 0)
			read_children(tree, fd);
	}
}

static void candidate_found(struct tree *tree, pid_t pid, void *data)
{
	if (tree_find(tree, pid) != NULL)
		return;
	if (tree->n_candidates == tree->candidates_capacity) {
		size_t capacity = tree->candidates_capacity > 0 ? tree->candidates_capacity * 2 : 256;
		struct tree_candidate *larger = realloc_array(tree->candidates, capacity, sizeof(*larger));
		if (larger == NULL)
			return;
		tree->candidates = larger;
		tree->candidates_capacity = capacity;
	}
	tree->candidates[tree->n_candidates++] = (struct tree_candidate){.pid = pid};
}

// Kernels without CONFIG_PROC_CHILDREN: every process of the machine is asked for its parent.
static void discover_by_scan(struct tree *tree)
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
	for (bool found = true; found;) { // until no candidate has a member for a parent: any order of pids
		found = false;
		for (size_t i = 0; i < tree->n_candidates; i++) {
			struct tree_candidate *candidate = &tree->candidates[i];
			if (candidate->ppid == 0 || tree_find(tree, candidate->ppid) == NULL)
				continue;
			discover(tree, candidate->pid);
			candidate->ppid = 0;
			found = true;
		}
	}
}

/* ---- rounds ---- */

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return (x > y) - (x < y);
}

static void list_pids(struct tree *tree)
{
	if (!tree->changed)
		return;
	if (tree->n_members > tree->pids_capacity) {
		pid_t *pids = realloc_array(tree->pids, tree->capacity, sizeof(*pids));
		if (pids == NULL)
			return;
		tree->pids = pids;
		tree->pids_capacity = tree->capacity;
	}
	tree->n_pids = 0;
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive && !tree->members[i].is_reaper)
			tree->pids[tree->n_pids++] = tree->members[i].pid;
	qsort(tree->pids, tree->n_pids, sizeof(*tree->pids), compare_pids);
	tree->changed = false;
}

static void add_member(const struct tree_member *member, struct tree_totals *totals)
{
	bool zombie = member->stat.state == 'Z' || member->stat.state == 'X';
	if (zombie || !member->readable)
		return;
	totals->processes++;
	*(member->is_main ? &totals->main_rss_bytes : &totals->descendants_rss_bytes) += member->stat.rss_bytes;
	*(member->is_main ? &totals->main_threads : &totals->descendants_threads) += member->stat.threads;
}

static void update_member(struct tree *tree, size_t index, int64_t t_ns)
{
	struct tree_member *member = &tree->members[index];
	if (!member->is_reaper) {
		bool was_sampled = member->sampled;
		int r = member_read(tree, member);
		tree->n_sampled += !was_sampled && member->sampled;
		if (member->is_main && r == 0)
			tree->main_own_ns = member->stat.own_ns - member->base_own_ns;
		// The child that the recorder waits for itself ends in tree_reaped, with better figures.
		if (r == -ESRCH && !(member->is_main && !tree->attached)) {
			member_end(tree, member, t_ns);
			return;
		}
	}
	if (tree->has_children_files)
		discover_children(tree, index, t_ns);
}

void tree_update(struct tree *tree, int64_t t_ns, struct tree_totals *ret_totals)
{
	tree->round++;
	if (!tree->has_children_files)
		discover_by_scan(tree);
	for (size_t i = 0; i < tree->n_members; i++) // grows as children are found
		if (tree->members[i].alive)
			update_member(tree, i, t_ns);

	struct tree_totals totals = {0};
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive && !tree->members[i].is_reaper)
			add_member(&tree->members[i], &totals);
	if (totals.processes == 0)
		totals.main_rss_bytes = totals.descendants_rss_bytes = totals.main_threads =
			totals.descendants_threads = VALUE_MISSING;
	int64_t main_ns, descendants_ns;
	tree_cpu(tree, &main_ns, &descendants_ns);
	if (main_ns > tree->last_main_ns)
		tree->last_main_ns = main_ns;
	if (descendants_ns > tree->last_descendants_ns)
		tree->last_descendants_ns = descendants_ns;
	totals.main_cpu_ns = tree->last_main_ns;
	totals.descendants_cpu_ns = tree->last_descendants_ns;
	list_pids(tree);
	*ret_totals = totals;
}

static void add_usage(struct rusage *sum, const struct rusage *usage)
{
	sum->ru_minflt += usage->ru_minflt;
	sum->ru_majflt += usage->ru_majflt;
	sum->ru_inblock += usage->ru_inblock;
	sum->ru_oublock += usage->ru_oublock;
	sum->ru_nvcsw += usage->ru_nvcsw;
	sum->ru_nivcsw += usage->ru_nivcsw;
	if (usage->ru_maxrss > sum->ru_maxrss)
		sum->ru_maxrss = usage->ru_maxrss;
}

static int64_t timeval_ns(const struct timeval *time)
{
	return (int64_t)time->tv_sec * NS_PER_S + (int64_t)time->tv_usec * 1000;
}

static bool has_children(const struct tree *tree, pid_t pid)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive && tree->members[i].stat.ppid == pid)
			return true;
	return false;
}

/* Those that ended since the last sample, below a process that is just about to be taken out: it has waited for them,
 * so their time must go to it. Noticed later, they would be left to its heir, who has that time already. */
static void notice_ended_below(struct tree *tree, pid_t pid, int64_t t_ns)
{
	if (!has_children(tree, pid))
		return;
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		if (member->alive && !member->is_reaper && member->pid != pid && member_read(tree, member) == -ESRCH)
			member_end(tree, member, t_ns);
	}
}

void tree_reaped(
	struct tree *tree, pid_t pid, const struct rusage *usage, const struct process_stat *last, int64_t t_ns)
{
	int64_t usage_ns = timeval_ns(&usage->ru_utime) + timeval_ns(&usage->ru_stime);
	add_usage(&tree->reaped, usage);
	struct tree_member *member = tree_find(tree, pid);
	if (member == NULL) { // it came and went between two samples
		tree->n_seen += tree->exits == NULL;
		tree->reaped_ns += usage_ns;
		return;
	}
	if (last != NULL)
		member->stat = *last;
	notice_ended_below(tree, pid, t_ns);
	if (member->is_main) {
		// rusage counts microseconds, but children too; without children it is the better figure.
		bool childless = tree->n_seen <= 1 && member->stat.children_minor_faults == 0;
		tree->main_own_ns = childless || last == NULL ? usage_ns : member->stat.own_ns;
	}
	member_end(tree, member, t_ns); // while reaped_ns is still without it: its heir, the reaper, expects it
	tree->reaped_ns += usage_ns;
}

void tree_forget_ended(struct tree *tree)
{
	size_t kept = 0;
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive)
			tree->members[kept++] = tree->members[i];
	if (kept == tree->n_members)
		return;
	tree->n_members = kept;
	table_fill(tree);
}

int64_t tree_start_ns(const struct tree *tree, const struct tree_member *member)
{
	return (int64_t)member->stat.start_ticks * tree->units.tick_ns - tree->suspended_ns;
}

/* ---- life ---- */

static int open_procfs(const struct wattle_env *env)
{
	const char *path = env->procfs_replaced ? env->procfs : "/proc";
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

// Attach: what the processes that are there already have used is not ours.
static void take_bases(struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		member->base_own_ns = member->stat.own_ns;
		member->base_children_ns = member->stat.children_ns;
		member->base_major_faults = member->stat.major_faults + member->stat.children_major_faults;
		member->base_minor_faults = member->stat.minor_faults + member->stat.children_minor_faults;
		process_io_read(tree->procfs_fd, member->pid, &member->base_io);
	}
	tree->main_own_ns = 0;
	tree->last_main_ns = tree->last_descendants_ns = 0;
}

static int attach(struct tree *tree, pid_t main_pid)
{
	struct process_stat stat;
	int r = tree_read_stat(tree, main_pid, &stat);
	if (r < 0)
		return r;
	struct tree_member *member = member_add(tree, main_pid);
	if (member == NULL)
		return -ENOMEM;
	member->is_main = true;
	tree->n_seen = 1;
	struct tree_totals totals;
	tree_update(tree, env_now_ns(tree->env), &totals);
	take_bases(tree);
	return 0;
}

static int follow(struct tree *tree, pid_t main_pid, pid_t reaper_pid)
{
	struct tree_member *reaper = member_add(tree, reaper_pid);
	if (reaper == NULL)
		return -ENOMEM;
	reaper->is_reaper = true;
	struct tree_member *member = member_add(tree, main_pid);
	if (member == NULL)
		return -ENOMEM;
	member->is_main = true;
	tree->n_seen = 1;
	return 0;
}

int tree_open(struct tree *tree, const struct wattle_env *env, pid_t main_pid, pid_t reaper_pid)
{
	*tree = (struct tree){
		.env = env,
		.procfs_fd = open_procfs(env),
		.units = process_units_get(),
		.suspended_ns = env_boottime_ns(env) - env_now_ns(env),
		.main_pid = main_pid,
		.attached = reaper_pid == 0,
		.text = malloc(TEXT_SIZE),
	};
	if (tree->procfs_fd < 0 || tree->text == NULL || table_reserve(tree, 64) < 0)
		return tree->procfs_fd < 0 ? tree->procfs_fd : -ENOMEM;
	wattle_cleanup_close int children_fd = open_children(tree, main_pid, main_pid);
	tree->has_children_files = children_fd >= 0;
	return tree->attached ? attach(tree, main_pid) : follow(tree, main_pid, reaper_pid);
}

void tree_close(struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		member_release(&tree->members[i]);
	free(tree->members);
	free(tree->table);
	free(tree->pids);
	free(tree->candidates);
	free(tree->text);
	if (tree->procfs_fd >= 0)
		close(tree->procfs_fd);
	*tree = (struct tree){.procfs_fd = -1};
}
