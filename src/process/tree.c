#include "process/internal.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "process/cgroup.h"
#include "process/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

bool tree_member_has_memory(const struct tree_member *member)
{
	bool zombie = member->stat.state == 'Z' || member->stat.state == 'X';
	return member->alive && !member->is_reaper && !zombie && member->readable;
}

static void add_member(const struct tree_member *member, struct tree_totals *totals)
{
	if (!tree_member_has_memory(member))
		return;
	totals->processes++;
	*(member->is_main ? &totals->main_rss_bytes : &totals->descendants_rss_bytes) += member->stat.rss_bytes;
	*(member->is_main ? &totals->main_threads : &totals->descendants_threads) += member->stat.threads;
}

// CPU time from before the recorder started, or before the process joined the cgroup, is not counted.
static void take_base(const struct tree *tree, struct tree_member *member)
{
	member->base_own_ns = member->stat.own_ns;
	member->base_children_ns = member->stat.children_ns;
	member->base_major_faults = member->stat.major_faults + member->stat.children_major_faults;
	member->base_minor_faults = member->stat.minor_faults + member->stat.children_minor_faults;
	process_io_read(tree->procfs_fd, member->pid, &member->base_io);
}

static void sampled_first(struct tree *tree, struct tree_member *member)
{
	tree->n_sampled++;
	bool moved_in = tree->cgroup != NULL && tree_start_ns(tree, member) < tree->round_t_ns;
	if (moved_in)
		take_base(tree, member);
}

static void update_member(struct tree *tree, size_t index, int64_t t_ns)
{
	struct tree_member *member = &tree->members[index];
	if (!member->is_reaper) {
		bool was_sampled = member->sampled;
		int r = tree_member_read(tree, member);
		if (!was_sampled && member->sampled)
			sampled_first(tree, member);
		if (member->is_main && r == 0)
			tree->main_own_ns = member->stat.own_ns - member->base_own_ns;
		// The recorder's own child ends in tree_reaped, with more accurate values.
		if (r == -ESRCH && !(member->is_main && !tree->attached)) {
			tree_member_end(tree, member, t_ns);
			return;
		}
	}
	if (tree->has_children_files)
		tree_discover_children(tree, index, t_ns);
}

static struct tree_totals add_up(struct tree *tree)
{
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
	return totals;
}

void tree_update(struct tree *tree, int64_t t_ns, struct tree_totals *ret_totals)
{
	tree->round++;
	if (tree->cgroup != NULL)
		tree_discover_cgroup(tree);
	else if (!tree->has_children_files)
		tree_discover_by_scan(tree);
	for (size_t i = 0; i < tree->n_members; i++) // grows as children are found
		if (tree->members[i].alive)
			update_member(tree, i, t_ns);
	if (tree->cgroup != NULL)
		tree_finish_cgroup(tree, t_ns);
	tree->round_t_ns = t_ns;
	list_pids(tree);
	*ret_totals = add_up(tree);
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
	tree_index(tree);
}

int64_t tree_start_ns(const struct tree *tree, const struct tree_member *member)
{
	return (int64_t)member->stat.start_ticks * tree->units.tick_ns - tree->suspended_ns;
}

/* ---- opening and closing ---- */

static int open_procfs(const struct wattle_env *env)
{
	const char *path = env->procfs_replaced ? env->procfs : "/proc";
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

// Attach: existing members count from now on.
static void begin_attached(struct tree *tree)
{
	struct tree_totals totals;
	tree_update(tree, env_now_ns(tree->env), &totals);
	for (size_t i = 0; i < tree->n_members; i++)
		take_base(tree, &tree->members[i]);
	tree->main_own_ns = 0;
	tree->last_main_ns = tree->last_descendants_ns = 0;
}

static int add_root(struct tree *tree, pid_t pid, bool is_main)
{
	struct process_stat stat;
	int r = tree_read_stat(tree, pid, &stat);
	if (r < 0)
		return r;
	struct tree_member *member = tree_member_add(tree, pid);
	if (member == NULL)
		return -ENOMEM;
	member->is_main = is_main;
	tree->n_seen++;
	return 0;
}

static int attach(struct tree *tree, pid_t main_pid)
{
	int r = add_root(tree, main_pid, true);
	if (r == 0)
		begin_attached(tree);
	return r;
}

int tree_follow_too(struct tree *tree, const pid_t *pids, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		pid_t pid = tree_pid(tree, pids[i]);
		if (tree_find(tree, pid) == NULL)
			r = add_root(tree, pid, false);
	}
	if (r == 0 && n > 0)
		begin_attached(tree);
	return r;
}

static int follow(struct tree *tree, pid_t main_pid, pid_t reaper_pid)
{
	struct tree_member *reaper = tree_member_add(tree, reaper_pid);
	if (reaper == NULL)
		return -ENOMEM;
	reaper->is_reaper = true;
	struct tree_member *member = tree_member_add(tree, main_pid);
	if (member == NULL)
		return -ENOMEM;
	member->is_main = true;
	tree->n_seen = 1;
	return 0;
}

static int init(struct tree *tree, const struct wattle_env *env, pid_t main_pid, bool attached)
{
	*tree = (struct tree){
		.env = env,
		.procfs_fd = open_procfs(env),
		.units = process_units_get(),
		.suspended_ns = env_boottime_ns(env) - env_now_ns(env),
		.main_pid = main_pid,
		.attached = attached,
		.cgroup_cpu_ns = VALUE_MISSING,
		.text = malloc(TREE_TEXT_SIZE),
	};
	if (tree->procfs_fd < 0 || tree->text == NULL || tree_reserve(tree, 64) < 0)
		return tree->procfs_fd < 0 ? tree->procfs_fd : -ENOMEM;
	tree->is_foreign = proc_is_foreign(tree->procfs_fd);
	tree->own_pid = attached && !env->procfs_replaced ? tree_pid(tree, getpid()) : 0;
	return 0;
}

int tree_open(struct tree *tree, const struct wattle_env *env, pid_t main_pid, pid_t reaper_pid)
{
	bool attached = reaper_pid == 0;
	int r = init(tree, env, main_pid, attached);
	if (r < 0)
		return r;
	pid_t pid = tree->main_pid = tree_pid(tree, main_pid);
	wattle_cleanup_close int children_fd = tree_open_children(tree, pid, pid);
	tree->has_children_files = children_fd >= 0;
	return attached ? attach(tree, pid) : follow(tree, pid, tree_pid(tree, reaper_pid));
}

int tree_open_cgroup(struct tree *tree, const struct wattle_env *env, struct cgroup *cgroup)
{
	int r = init(tree, env, cgroup->main_pid, true);
	if (r < 0)
		return r;
	tree->cgroup = cgroup;
	tree_begin_cgroup(tree);
	begin_attached(tree);
	return 0;
}

void tree_close(struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		tree_member_release(&tree->members[i]);
	free(tree->members);
	free(tree->table);
	free(tree->pids);
	free(tree->candidates);
	free(tree->text);
	if (tree->procfs_fd >= 0)
		close(tree->procfs_fd);
	*tree = (struct tree){.procfs_fd = -1};
}
