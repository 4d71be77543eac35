// Process ancestry: CPU time of ended children, and membership in the target's process tree.
#include "monitor/internal.h"

#include "base/search.h"
#include "base/util.h"

enum { ANCESTORS_MAX = 256 }; // loop limit: parents read during changes can form a cycle

static bool is_row_before(const void *item, const void *key)
{
	return ((const struct process_row *)item)->now.pid < *(const pid_t *)key;
}

struct process_row *process_rows_find(struct process_row *rows, size_t n, pid_t pid)
{
	size_t at = search_first(rows, n, sizeof(*rows), &pid, is_row_before);
	return at < n && rows[at].now.pid == pid ? &rows[at] : NULL;
}

struct process_row *process_table_find(const struct process_table *table, pid_t pid)
{
	return process_rows_find(table->rows, table->n, pid);
}

/* ---- children that ended ---- */

// Finds the process that waited for an ended one: its parent, or that parent's heir if the parent has ended too.
static struct process_row *find_reaper(struct process_table *table, const struct process_row *ended)
{
	pid_t parent = ended->now.ppid;
	for (int i = 0; i < ANCESTORS_MAX && parent > 0; i++) {
		struct process_row *reaper = process_rows_find(table->rows, table->n, parent);
		if (reaper != NULL && !reaper->is_new)
			return reaper;
		const struct process_row *before = process_rows_find(table->old, table->n_old, parent);
		if (before == NULL)
			return NULL;
		parent = before->now.ppid;
	}
	return NULL;
}

static void count_ended(struct process_table *table)
{
	for (size_t i = 0; i < table->n_ended; i++) {
		struct process_row *reaper = find_reaper(table, &table->ended[i]);
		if (reaper != NULL)
			reaper->counted_ns += table->ended[i].own_ns + table->ended[i].children_ns;
	}
}

/* CPU time of children that ended between two samples appears in the parent when it waits for them. The lifetime CPU time
 * of an orphan may appear in init, so the sum of late CPU time is limited to the remaining busy time of the machine. */
static void count_late(struct process_table *table, int64_t busy_ns)
{
	double late_ns = 0, own_ns = 0;
	size_t at = 0;
	for (size_t i = 0; i < table->n; i++) {
		struct process_row *row = &table->rows[i];
		while (at < table->n_old && table->old[at].now.pid < row->now.pid)
			at++;
		own_ns += value_ok(row->used_ns) ? (double)row->used_ns : 0;
		if (row->is_new || at == table->n_old || !value_ok(row->used_ns))
			continue;
		int64_t grown_ns = row->children_ns - table->old[at].children_ns - row->counted_ns;
		row->late_ns = grown_ns > 0 ? grown_ns : 0;
		late_ns += (double)row->late_ns;
	}
	double left_ns = value_ok(busy_ns) ? fmax((double)busy_ns - own_ns, 0) : late_ns;
	double part = late_ns > left_ns ? left_ns / late_ns : 1;
	for (size_t i = 0; i < table->n; i++) {
		struct process_row *row = &table->rows[i];
		row->late_ns = (int64_t)((double)row->late_ns * part);
		if (value_ok(row->used_ns))
			row->used_ns += row->late_ns;
	}
}

void process_tree_count(struct process_table *table, int64_t busy_ns)
{
	count_ended(table);
	count_late(table, busy_ns);
}

/* ---- the target's process tree ---- */

static bool has_ended(const struct process_row *row)
{
	return row == NULL || row->now.state == 'Z' || row->now.state == 'X';
}

// Membership is permanent: an orphaned process stays in the target.
static bool descends_from_target(const struct process_table *table, const struct process_row *row)
{
	for (int i = 0; i < ANCESTORS_MAX && row != NULL && !row->now.is_target; i++)
		row = row->now.ppid > 0 ? process_table_find(table, row->now.ppid) : NULL;
	return row != NULL && row->now.is_target;
}

void process_tree_mark_target(struct process_table *table)
{
	if (table->target_pid == 0)
		return;
	struct process_row *root = process_table_find(table, table->target_pid);
	if (root != NULL && !value_ok(table->last_t_ns)) // later the pid may be reused
		root->now.is_target = true;
	table->target_is_gone = has_ended(root) || !root->now.is_target;
	for (size_t i = 0; i < table->n; i++)
		if (table->rows[i].is_new)
			table->rows[i].now.is_target = descends_from_target(table, &table->rows[i]);
}
