/* A cgroup as the target: its members are the processes that it lists, and its own account gives their CPU time. */
#include "process/internal.h"

#include "base/util.h"
#include "process/cgroup.h"

#include <time.h>
#include <unistd.h>

/* The sub-cgroups are read one after the other, so a process that moves meanwhile may be missed. An empty list is
 * therefore read again, and a member counts as gone only if it is missing twice. */
enum { EMPTY_TRIES = 3, ROUNDS_MISSING = 2 };

struct listing {
	struct tree *tree;
	int64_t n_own; // number of entries that are wattle itself
};

static void listed(void *data, pid_t pid)
{
	struct listing *listing = data;
	struct tree *tree = listing->tree;
	if (!tree->env->procfs_replaced && pid == getpid()) {
		listing->n_own++;
		return;
	}
	struct tree_member *member = tree_discover(tree, pid);
	if (member != NULL)
		member->listed_round = tree->round;
}

void tree_discover_cgroup(struct tree *tree)
{
	tree->listed = 0;
	for (int tries = 0; tries < EMPTY_TRIES && tree->listed == 0; tries++) {
		struct listing listing = {.tree = tree};
		int64_t n = cgroup_each_process(tree->cgroup, listed, &listing);
		if (n < 0 || !cgroup_is_populated(tree->cgroup)) // gone, or certainly empty
			return;
		tree->listed = n - listing.n_own;
		if (tree->listed == 0)
			nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
}

void tree_read_account(struct tree *tree)
{
	int64_t account_ns = cgroup_cpu_ns(tree->cgroup);
	if (!value_ok(account_ns) || !value_ok(tree->cgroup_base_ns))
		return; // keep the last value
	int64_t used_ns = account_ns - tree->cgroup_base_ns;
	if (used_ns > tree->cgroup_cpu_ns)
		tree->cgroup_cpu_ns = used_ns;
}

void tree_finish_cgroup(struct tree *tree, int64_t t_ns)
{
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		if (member->alive && tree->round - member->listed_round >= ROUNDS_MISSING)
			tree_member_end(tree, member, t_ns);
	}
	tree_read_account(tree);
}

void tree_begin_cgroup(struct tree *tree)
{
	tree->cgroup_base_ns = cgroup_cpu_ns(tree->cgroup);
	tree_discover_cgroup(tree);
	struct tree_member *main = tree_find(tree, tree->main_pid);
	if (main != NULL)
		main->is_main = true;
}
