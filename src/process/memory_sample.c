#include "process/memory.h"

#include "base/checked_arith.h"
#include "base/clock.h"
#include "base/util.h"
#include "metric/metric.h"

#include <errno.h>

enum { RUNS_MIN = 16, RUNS_MAX = 64, RUNS_OF_ALL = 1024, MEMBERS_MIN = 4 };

static const int64_t sample_max_ns = 10 * NS_PER_MS; // maximum duration of a sample: the sensors wait for it
static const int64_t all_credit_max_ns = 50 * NS_PER_MS;
static const int64_t few_bytes = 1 << 20; // smaller amounts are negligible
static const double changed_share = 0.25; // share of the target's memory whose change justifies using up the budget
static const double min_share = 0.005;    // smaller changes are ignored
/* A program that allocates and frees constantly appears to change all the time. If a sample agrees with the estimate,
 * the next one waits twice as long. Timer ticks jitter, so the limits are nine tenths of 100 ms and of 0.8 s. */
static const double difference_share = 0.02;
static const int64_t wait_min_ns = 90 * NS_PER_MS, wait_max_ns = 720 * NS_PER_MS;

/* ---- when to sample ---- */

static void add_credit(struct memory_reader *reader, int64_t t_ns)
{
	reader->all_credit_ns += (int64_t)(reader->all_share * (double)(t_ns - reader->all_credit_t_ns));
	reader->all_credit_t_ns = t_ns;
	if (reader->all_credit_ns > all_credit_max_ns)
		reader->all_credit_ns = all_credit_max_ns;
}

static int64_t cost_of_all(const struct memory_reader *reader, int64_t processes)
{
	double cost_ns = reader->sample_ns_per_process * (double)processes;
	return cost_ns < (double)sample_max_ns ? (int64_t)cost_ns : sample_max_ns;
}

bool memory_sample_due(struct memory_reader *reader, const struct memory_estimate *estimate, int64_t t_ns)
{
	if (reader->all_share <= 0)
		return false;
	add_credit(reader, t_ns);
	int64_t cost_ns = cost_of_all(reader, estimate->processes);
	if (estimate->processes > reader->sample_processes)
		reader->sample_wait_ns = 0;
	if (value_ok(reader->sample_t_ns) && t_ns - reader->sample_t_ns < reader->sample_wait_ns)
		return false;
	// A single process shares no memory within the target: its resident memory is its RAM.
	if (estimate->processes < 2 || estimate->changed_bytes < few_bytes || reader->all_credit_ns < cost_ns)
		return false;
	double all_bytes = (double)estimate->rss_bytes;
	double changed = (double)estimate->changed_bytes / all_bytes;
	bool is_steady = (double)(estimate->changed_bytes - estimate->last_changed_bytes) < min_share * all_bytes;
	return changed >= changed_share ||
		(changed >= min_share && (is_steady || reader->all_credit_ns >= 2 * cost_ns));
}

/* ---- which members to read ---- */

static int compare_descending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

static bool may_be_read(const struct tree_member *member)
{
	return tree_member_has_memory(member) && !member->memory.is_denied;
}

/* Minimum changed memory of a member to be read, so that at most n_max members are read (or more if equal); 0: all
 * members, or out of memory. */
static int64_t min_unreliable(struct memory_reader *reader, const struct tree *tree, size_t n_max)
{
	size_t n = 0;
	for (size_t i = 0; i < tree->n_members; i++) {
		if (!may_be_read(&tree->members[i]))
			continue;
		int64_t *room = array_reserve(reader->unreliable_bytes, n, &reader->unreliable_capacity, sizeof(*room),
			256);
		if (room == NULL)
			return 0;
		reader->unreliable_bytes = room;
		reader->unreliable_bytes[n++] = memory_estimate_unreliable(&tree->members[i], tree->units.page_bytes);
	}
	if (n <= n_max)
		return 0;
	qsort(reader->unreliable_bytes, n, sizeof(*reader->unreliable_bytes), compare_descending);
	return reader->unreliable_bytes[n_max - 1];
}

/* ---- reading ---- */

static size_t runs_for(int64_t processes)
{
	size_t n = RUNS_OF_ALL / (size_t)processes;
	return n < RUNS_MIN ? RUNS_MIN : n > RUNS_MAX ? RUNS_MAX : n;
}

static bool read_member(struct memory_reader *reader, const struct tree *tree, struct tree_member *member,
	size_t n_runs)
{
	struct page_sample *pages = &reader->pages;
	int r = page_sample_read(pages, tree, member, n_runs, reader->text, MEMORY_TEXT_SIZE);
	member->memory.is_denied = r == -EACCES || r == -EPERM || r == -ENOENT || r == -E2BIG;
	if (r < 0)
		return false;
	tree_member_read_rss(tree, member); // read at the same time as the sample
	int64_t file_bytes = member->stat.file_bytes, anonymous_bytes = member->stat.rss_bytes - file_bytes;
	if (anonymous_bytes < 0)
		return false;
	int64_t page_bytes = tree->units.page_bytes;
	int64_t private_bytes = page_sample_private(pages, anonymous_bytes, file_bytes, page_bytes);
	memory_member_read(member, private_bytes, anonymous_bytes, file_bytes);
	uint32_t process = memory_reader_next(reader);
	for (size_t i = 0; i < pages->n_areas; i++)
		memory_reader_add_path(reader, process, pages->areas[i].path_hash, member->is_main,
			page_sample_shared(&pages->areas[i], page_bytes));
	return true;
}

/* While members are read, pages may become shared (a child maps them) or private again (it ends). Pages that only the
 * root had both before and after the other readings are certainly private; the rest counts as shared. */
static void read_root_again(struct memory_reader *reader, struct tree *tree, size_t n_runs)
{
	struct tree_member *root = tree_find(tree, tree->main_pid);
	if (root == NULL || !root->is_main || !tree_member_has_memory(root) || !root->memory.is_read)
		return;
	int64_t before_bytes = root->memory.private_bytes;
	if (read_member(reader, tree, root, n_runs) && root->memory.private_bytes > before_bytes)
		root->memory.private_bytes = before_bytes;
}

static void charge(struct memory_reader *reader, int64_t cost_ns, size_t n_tried)
{
	double n = (double)(n_tried > 0 ? n_tried : 1), max_ns = MEMORY_EXCESS_MAX * reader->sample_ns_per_process * n;
	double believed_ns = (double)cost_ns < max_ns ? (double)cost_ns : max_ns, per_process_ns = believed_ns / n;
	double excess_ns = per_process_ns - reader->sample_ns_per_process;
	reader->sample_ns_per_process += excess_ns > 0 ? excess_ns : excess_ns / 4;
	reader->all_credit_ns -= (int64_t)believed_ns;
	reader->spent_ns += cost_ns;
}

static void add_private(const struct memory_estimate *estimate, const struct tree *tree, struct memory_reading *reading)
{
	int64_t private_bytes[2] = {0};
	size_t n_members[2] = {0}, n_read[2] = {0}; // of descendants, of the main process
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct tree_member *member = &tree->members[i];
		if (!tree_member_has_memory(member))
			continue;
		private_bytes[member->is_main] += memory_estimate_private(estimate, member);
		n_members[member->is_main]++;
		n_read[member->is_main] += member->memory.is_read;
	}
	// The value is unknown if no process of the group could be read.
	if (n_members[true] == 0 || n_read[true] > 0) {
		reading->main.private_bytes = private_bytes[true];
		reading->main.shared_bytes = estimate->shared.main_bytes;
	}
	if (n_members[false] == 0 || n_read[false] > 0) {
		reading->descendants.private_bytes = private_bytes[false];
		reading->descendants.shared_bytes = estimate->shared.descendants_bytes;
	}
	reading->combined_shared_bytes = estimate->shared.combined_bytes;
}

static bool has_unread(const struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree_member_has_memory(&tree->members[i]) && !tree->members[i].memory.is_read)
			return true;
	return false;
}

static bool differs_from_carried(const struct memory_reading *reading, int64_t carried_bytes)
{
	int64_t private_bytes = value_sum(reading->main.private_bytes, reading->descendants.private_bytes);
	if (!value_ok(private_bytes))
		return false;
	double read_bytes = (double)(private_bytes + reading->combined_shared_bytes);
	return fabs(read_bytes - (double)carried_bytes) > difference_share * read_bytes;
}

static void set_wait(struct memory_reader *reader, const struct memory_estimate *estimate, bool is_different,
	int64_t t_ns)
{
	int64_t wait_ns = is_different ? wait_min_ns : 2 * reader->sample_wait_ns;
	reader->sample_wait_ns = wait_ns < wait_min_ns ? wait_min_ns : wait_ns > wait_max_ns ? wait_max_ns : wait_ns;
	reader->sample_processes = estimate->processes;
	reader->sample_t_ns = t_ns;
}

bool memory_sample_read(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	struct memory_reading *ret_reading)
{
	int64_t before_ns = clock_cpu_ns();
	size_t n_max = (size_t)((double)sample_max_ns / reader->sample_ns_per_process), n_tried = 0, n_read = 0,
	       n_left = 0;
	size_t n_runs = runs_for(estimate->processes);
	int64_t min_bytes = min_unreliable(reader, tree, n_max > MEMBERS_MIN ? n_max : MEMBERS_MIN);
	memory_reader_begin(reader);
	for (size_t i = 0; i < tree->n_members; i++) {
		struct tree_member *member = &tree->members[i];
		if (!may_be_read(member))
			continue;
		bool has_time = n_tried < MEMBERS_MIN || clock_cpu_ns() - before_ns < sample_max_ns;
		bool is_chosen = member->is_main ||
			(has_time && memory_estimate_unreliable(member, tree->units.page_bytes) >= min_bytes);
		n_tried += is_chosen;
		n_read += is_chosen && read_member(reader, tree, member, n_runs);
		n_left += !is_chosen;
	}
	if (n_read > 1)
		read_root_again(reader, tree, n_runs);
	charge(reader, clock_cpu_ns() - before_ns, n_tried);
	if (n_read == 0) {
		set_wait(reader, estimate, false, t_ns);
		return false;
	}
	struct memory_shared shared = memory_reader_shared(reader);
	struct memory_reading reading = memory_nothing_read;
	memory_estimate_apply_reading(estimate, tree, &shared, n_left == 0);
	add_private(estimate, tree, &reading);
	if (has_unread(tree))
		memory_estimate_add_unread(estimate, tree, &reading);
	set_wait(reader, estimate, differs_from_carried(&reading, estimate->carried.combined_bytes), t_ns);
	*ret_reading = reading;
	return true;
}

bool memory_read_if_due(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, struct memory_reading *ret_reading)
{
	int64_t rss_bytes = totals->processes > 0 ? totals->main_rss_bytes + totals->descendants_rss_bytes
						  : VALUE_MISSING;
	if (!memory_reader_due(reader, t_ns, rss_bytes, totals->processes))
		return memory_sample_due(reader, estimate, t_ns) &&
			memory_sample_read(reader, estimate, tree, t_ns, ret_reading);
	memory_reader_read(reader, tree, t_ns, rss_bytes, totals->processes, ret_reading);
	if (!value_ok(ret_reading->combined_shared_bytes))
		return false;
	struct memory_shared shared = memory_reader_shared(reader);
	memory_estimate_apply_reading(estimate, tree, &shared, true);
	if (reader->n_unread > 0)
		memory_estimate_add_unread(estimate, tree, ret_reading);
	return true;
}

static void put_reading(const struct memory_reading *reading, int64_t *values)
{
	values[RUN_MAIN_PSS] = reading->main.pss_bytes;
	values[RUN_MAIN_USS] = reading->main.uss_bytes;
	values[RUN_MAIN_PRIVATE] = reading->main.private_bytes;
	values[RUN_MAIN_SHARED] = reading->main.shared_bytes;
	values[RUN_DESCENDANTS_PSS] = reading->descendants.pss_bytes;
	values[RUN_DESCENDANTS_USS] = reading->descendants.uss_bytes;
	values[RUN_DESCENDANTS_PRIVATE] = reading->descendants.private_bytes;
	values[RUN_DESCENDANTS_SHARED] = reading->descendants.shared_bytes;
	values[RUN_COMBINED_SHARED] = reading->combined_shared_bytes;
}

void memory_measure(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, int64_t *run_values)
{
	memory_estimate_update(estimate, tree);
	run_values[RUN_MAIN_RAM] = estimate->carried.main_bytes;
	run_values[RUN_DESCENDANTS_RAM] = estimate->carried.descendants_bytes;
	run_values[RUN_COMBINED_RAM] = estimate->carried.combined_bytes;
	struct memory_reading reading;
	if (memory_read_if_due(reader, estimate, tree, t_ns, totals, &reading))
		put_reading(&reading, run_values);
}
