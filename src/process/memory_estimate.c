#include "process/memory.h"

#include "base/util.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t anonymous_of(const struct tree_member *member)
{
	return larger(0, member->stat.rss_bytes - member->stat.file_bytes);
}

/* ---- new processes ---- */

static void detect_fork(struct tree *tree, struct tree_member *member)
{
	struct tree_member_memory *memory = &member->memory;
	struct tree_member *parent = tree_find(tree, member->stat.ppid);
	bool has_parent = parent != NULL && parent != member && tree_member_has_memory(parent);
	bool was_forked = memory->is_known && memory->has_forked;
	memory->has_forked = has_parent && (!memory->is_known || was_forked) &&
		tree_member_has_forked(tree, member, parent);
	memory->is_denied = false;
	if (memory->has_forked && !was_forked) {
		memory->inherited_bytes = anonymous_of(parent);
		parent->memory.is_stale = true;
	} else if (memory->has_forked) {
		memory->inherited_bytes = smaller(memory->inherited_bytes, anonymous_of(member));
	}
	if (!memory->has_forked)
		memory->inherited_bytes = 0;
	memory->is_known = true;
	memcpy(memory->name, member->stat.name, sizeof(memory->name));
}

static void update_fork_state(struct tree *tree, struct tree_member *member)
{
	struct tree_member_memory *memory = &member->memory;
	bool has_new_name = memcmp(memory->name, member->stat.name, sizeof(memory->name)) != 0;
	// A Python process that executes another Python keeps its name but loses the inherited memory.
	bool has_less = memory->has_forked && !memory->is_read && anonymous_of(member) < memory->inherited_bytes / 2;
	bool may_have_executed = has_less || (has_new_name && (memory->has_forked || memory->is_denied));
	if (!memory->is_known || may_have_executed)
		detect_fork(tree, member);
}

/* ---- one process ---- */

// Anonymous memory that a forked child's page faults may have copied, limited by the maximum of the children that were
// read.
static int64_t copied_bytes(const struct memory_estimate *estimate, const struct tree_member *member)
{
	if (!member->memory.has_forked)
		return 0;
	double faults = (double)larger(0, member->stat.minor_faults);
	double bytes = faults * estimate->private_per_fault_byte * (double)estimate->page_bytes;
	return smaller((int64_t)bytes, estimate->max_private_bytes);
}

int64_t memory_estimate_private(const struct memory_estimate *estimate, const struct tree_member *member)
{
	const struct tree_member_memory *memory = &member->memory;
	int64_t anonymous = anonymous_of(member);
	if (!memory->is_read) {
		int64_t copied = smaller(copied_bytes(estimate, member), anonymous);
		return larger(larger(0, anonymous - memory->inherited_bytes), copied);
	}
	int64_t gained = memory->private_bytes + anonymous - memory->anonymous_bytes;
	return larger(0, smaller(gained, member->stat.rss_bytes));
}

int64_t memory_estimate_unreliable(const struct tree_member *member, int64_t page_bytes)
{
	const struct tree_member_memory *memory = &member->memory;
	if (memory->is_denied)
		return 0;
	if (!memory->is_read || memory->is_stale)
		return member->stat.rss_bytes;
	int64_t grown = member->stat.rss_bytes - memory->anonymous_bytes - memory->file_bytes;
	int64_t faulted = larger(0, member->stat.minor_faults - memory->minor_faults) * page_bytes;
	return smaller(larger(grown < 0 ? -grown : grown, faulted), member->stat.rss_bytes);
}

/* ---- the target ---- */

struct sums { // sums over the main process, descendants and both
	int64_t rss_bytes, private_bytes, largest_file_bytes;
	int64_t largest_inherited_bytes; // largest anonymous memory that an unread child shares with its parent
	int64_t processes;
};

static void add(struct sums *sums, const struct tree_member *member, int64_t private_bytes)
{
	sums->processes++;
	sums->rss_bytes += member->stat.rss_bytes;
	sums->private_bytes += private_bytes;
	sums->largest_file_bytes = larger(sums->largest_file_bytes, member->stat.file_bytes);
	if (!member->memory.is_read)
		sums->largest_inherited_bytes = larger(sums->largest_inherited_bytes,
			anonymous_of(member) - private_bytes);
}

static int64_t total_of(const struct sums *sums, int64_t shared_bytes, int64_t largest_file_bytes)
{
	int64_t grown_bytes = larger(0, sums->largest_file_bytes - largest_file_bytes);
	int64_t max_bytes = larger(0, sums->rss_bytes - sums->private_bytes);
	return sums->private_bytes + smaller(shared_bytes + grown_bytes, max_bytes);
}

struct group_sums {
	struct sums main, descendants, all;
};

static void add_to_groups(struct group_sums *sums, const struct memory_estimate *estimate,
	const struct tree_member *member)
{
	int64_t private_bytes = memory_estimate_private(estimate, member);
	add(member->is_main ? &sums->main : &sums->descendants, member, private_bytes);
	add(&sums->all, member, private_bytes);
}

static struct memory_totals totals_of(const struct memory_estimate *estimate, const struct group_sums *sums)
{
	if (sums->all.processes == 0)
		return (struct memory_totals){VALUE_MISSING, VALUE_MISSING, VALUE_MISSING};
	const struct memory_shared *shared = &estimate->shared, *file = &estimate->largest_file;
	int64_t of_descendants = larger(shared->descendants_bytes, sums->descendants.largest_inherited_bytes);
	int64_t main_bytes = total_of(&sums->main, shared->main_bytes, file->main_bytes);
	int64_t descendants_bytes = total_of(&sums->descendants, of_descendants, file->descendants_bytes);
	int64_t combined_bytes = total_of(&sums->all, shared->combined_bytes, file->combined_bytes);
	combined_bytes = larger(combined_bytes, larger(main_bytes, descendants_bytes));
	return (struct memory_totals){main_bytes, descendants_bytes,
		smaller(combined_bytes, main_bytes + descendants_bytes)};
}

void memory_estimate_update(struct memory_estimate *estimate, struct tree *tree)
{
	struct group_sums sums = {0};
	int64_t unreliable_bytes = 0;
	estimate->page_bytes = tree->units.page_bytes;
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		if (!tree_member_has_memory(member))
			continue;
		update_fork_state(tree, member);
		add_to_groups(&sums, estimate, member);
		unreliable_bytes += memory_estimate_unreliable(member, tree->units.page_bytes);
	}
	estimate->rss_bytes = sums.all.rss_bytes;
	estimate->processes = sums.all.processes;
	estimate->last_changed_bytes = estimate->changed_bytes;
	estimate->changed_bytes = unreliable_bytes;
	estimate->carried = totals_of(estimate, &sums);
}

static void put_group(struct memory_group *group, int64_t private_bytes, int64_t total_bytes)
{
	if (!value_ok(group->private_bytes))
		return;
	group->private_bytes = private_bytes;
	group->shared_bytes = total_bytes - private_bytes;
}

void memory_estimate_add_unread(const struct memory_estimate *estimate, const struct tree *tree,
	struct memory_reading *reading)
{
	struct group_sums sums = {0};
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree_member_has_memory(&tree->members[i]))
			add_to_groups(&sums, estimate, &tree->members[i]);
	struct memory_totals totals = totals_of(estimate, &sums);
	put_group(&reading->main, sums.main.private_bytes, totals.main_bytes);
	put_group(&reading->descendants, sums.descendants.private_bytes, totals.descendants_bytes);
	reading->combined_shared_bytes = totals.combined_bytes - sums.all.private_bytes;
}

static struct memory_shared largest_files(const struct tree *tree)
{
	struct memory_shared largest = {0};
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct tree_member *member = &tree->members[i];
		if (!tree_member_has_memory(member) || !member->memory.is_read)
			continue;
		int64_t *group = member->is_main ? &largest.main_bytes : &largest.descendants_bytes;
		*group = larger(*group, member->memory.file_bytes);
	}
	largest.combined_bytes = larger(largest.main_bytes, largest.descendants_bytes);
	return largest;
}

static void update_private_per_fault(struct memory_estimate *estimate, const struct tree *tree)
{
	double private_bytes = 0, faults = 0;
	estimate->max_private_bytes = 0;
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct tree_member *member = &tree->members[i];
		if (!tree_member_has_memory(member) || !member->memory.is_read || !member->memory.has_forked)
			continue;
		private_bytes += (double)member->memory.private_bytes;
		faults += (double)member->memory.minor_faults;
		estimate->max_private_bytes = larger(estimate->max_private_bytes, member->memory.private_bytes);
	}
	double share = faults > 0 ? private_bytes / (faults * (double)tree->units.page_bytes) : 0;
	estimate->private_per_fault_byte = share < 1 ? share : 1;
}

void memory_estimate_apply_reading(struct memory_estimate *estimate, const struct tree *tree,
	const struct memory_shared *shared, bool is_whole)
{
	const struct memory_shared before = estimate->shared;
	estimate->shared = *shared;
	if (!is_whole) { // the root is always read
		int64_t of_descendants = larger(before.descendants_bytes, shared->descendants_bytes);
		int64_t max_bytes = smaller(before.combined_bytes, shared->main_bytes + of_descendants);
		estimate->shared.descendants_bytes = of_descendants;
		estimate->shared.combined_bytes = larger(shared->combined_bytes, max_bytes);
	}
	estimate->largest_file = largest_files(tree);
	update_private_per_fault(estimate, tree);
	estimate->changed_bytes = estimate->last_changed_bytes = 0;
}
