/* CPU time accounting: CPU time moves from ended children to the parents that wait for them, and must be neither lost
 * nor counted twice. */
#include "process/internal.h"

#include "base/util.h"

#include <errno.h>

// CPU time since the recorder started, including children and vanished children.
static int64_t member_cpu_ns(const struct tree *tree, const struct tree_member *member)
{
	int64_t waited_ns = member->is_reaper ? tree->reaped_ns : member->stat.children_ns - member->base_children_ns;
	int64_t children_ns = waited_ns > member->gone_children_ns ? waited_ns : member->gone_children_ns;
	int64_t own_ns = member->is_reaper ? 0 : member->stat.own_ns - member->base_own_ns;
	return own_ns + children_ns;
}

static int64_t summed_cpu_ns(const struct tree *tree)
{
	int64_t total_ns = tree->orphan_ns;
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive)
			total_ns += member_cpu_ns(tree, &tree->members[i]);
	return total_ns;
}

void tree_cpu(const struct tree *tree, int64_t *ret_main_ns, int64_t *ret_descendants_ns)
{
	bool has_account = value_ok(tree->cgroup_cpu_ns);
	int64_t total_ns = has_account ? tree->cgroup_cpu_ns : summed_cpu_ns(tree);
	// The sum of ticks may exceed the account by one tick: the account is the total.
	*ret_main_ns = has_account && tree->main_own_ns > total_ns ? total_ns : tree->main_own_ns;
	*ret_descendants_ns = total_ns > *ret_main_ns ? total_ns - *ret_main_ns : 0;
}

// The nearest living ancestor, skipping ancestors that ended in this round; NULL: none.
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

void tree_member_end(struct tree *tree, struct tree_member *member, int64_t t_ns)
{
	int64_t cpu_ns = member_cpu_ns(tree, member);
	member->alive = false;
	member->end_ns = t_ns;
	tree->changed = true;
	tree_member_release(member);
	struct tree_member *living_parent = living_ancestor(tree, member);
	if (living_parent == NULL) {
		tree->orphan_ns += cpu_ns;
		return;
	}
	living_parent->gone_children_ns += cpu_ns;
	// The heir's children time grows by all of its time, including the part from before the recorder started.
	living_parent->base_children_ns += member->base_own_ns + member->base_children_ns;
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

/* Handles processes that ended since the last sample below a process that is about to be removed: that process waited
 * for them and gets their time. If handled later, their time would go to its heir, which already has it. */
static void notice_ended_below(struct tree *tree, pid_t pid, int64_t t_ns)
{
	if (!has_children(tree, pid))
		return;
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		if (member->alive && !member->is_reaper && member->pid != pid &&
			tree_member_read(tree, member) == -ESRCH)
			tree_member_end(tree, member, t_ns);
	}
}

void tree_reaped(struct tree *tree, pid_t pid, const struct rusage *usage, const struct process_stat *last,
	int64_t t_ns)
{
	int64_t usage_ns = timeval_ns(&usage->ru_utime) + timeval_ns(&usage->ru_stime);
	add_usage(&tree->reaped, usage);
	struct tree_member *member = tree_find(tree, pid);
	if (member == NULL) { // the process started and ended between two samples
		tree->n_seen += tree->exits == NULL;
		tree->reaped_ns += usage_ns;
		return;
	}
	if (last != NULL)
		member->stat = *last;
	notice_ended_below(tree, pid, t_ns);
	if (member->is_main) {
		// rusage has microsecond resolution but includes children; without children it is more accurate.
		bool childless = tree->n_seen <= 1 && member->stat.children_minor_faults == 0;
		tree->main_own_ns = childless || last == NULL ? usage_ns : member->stat.own_ns;
	}
	tree_member_end(tree, member, t_ns); // before reaped_ns includes it: the heir, the reaper, expects it
	tree->reaped_ns += usage_ns;
}

void tree_main_waited(struct tree *tree, const struct rusage *usage, int64_t t_ns)
{
	int64_t main_ns, descendants_ns;
	add_usage(&tree->reaped, usage);
	struct tree_member *member = tree_find(tree, tree->main_pid);
	if (member != NULL && member->is_main) {
		notice_ended_below(tree, tree->main_pid, t_ns);
		tree_member_end(tree, member, t_ns);
	}
	tree_cpu(tree, &main_ns, &descendants_ns);
	int64_t unseen_ns = timeval_ns(&usage->ru_utime) + timeval_ns(&usage->ru_stime) - main_ns - descendants_ns;
	if (unseen_ns <= 0) // part of the target was never waited for and only seen in samples
		return;
	tree->orphan_ns += unseen_ns;
	if (tree->n_seen <= 1 && descendants_ns == 0)
		tree->main_own_ns += unseen_ns;
}
