#include "monitor/internal.h"

#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>

/* Looks up the groups of a process at its first two samples, because a launcher may move it just after the start, and then
 * every 32nd sample, because some move late. Reading two files of each process at each sample would cost more than all
 * other work. */
enum { RECHECK_PERIOD = 32, RECHECK_FIRST = 2 };

int group_table_open(struct group_table *table, const struct monitor_options *options)
{
	*table = (struct group_table){.env = options->env};
	bool any = false;
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		any = (table->wanted[k] = options->groups[k]) || any;
	if (!any)
		return 0;
	table->scratch = malloc(JOB_LOOKUP_SCRATCH);
	return table->scratch != NULL ? 0 : -ENOMEM;
}

void group_table_close(struct group_table *table)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		free(table->groups[k]);
	free(table->scratch);
	*table = (struct group_table){0};
}

/* ---- lookup ---- */

static bool is_free(const struct monitor_group *group)
{
	return group->name[0] == '\0';
}

// Returns index + 1; 0: no memory, the process gets no group.
static uint32_t find_or_add(struct group_table *table, int k, const char *name)
{
	size_t assign_groups = table->n[k];
	for (size_t i = 0; i < table->n[k]; i++) {
		if (strcmp(table->groups[k][i].name, name) == 0)
			return (uint32_t)i + 1;
		if (is_free(&table->groups[k][i]) && assign_groups == table->n[k])
			assign_groups = i;
	}
	if (assign_groups == table->n[k]) {
		struct monitor_group *larger = array_reserve(table->groups[k], table->n[k], &table->capacity[k],
			sizeof(*larger), 16);
		if (larger == NULL)
			return 0;
		table->groups[k] = larger;
		table->n[k]++;
	}
	table->groups[k][assign_groups] = (struct monitor_group){.uid = (uid_t)-1};
	text_copy(table->groups[k][assign_groups].name, MONITOR_GROUP_SIZE, name);
	return (uint32_t)assign_groups + 1;
}

// The owner of a job is its user, not root as the daemon that started it. A job with root processes only belongs to root.
static void take_owner(struct monitor_group *job, const struct job_lookup_result *job_lookup_result,
	const struct process_row *row)
{
	if (job_lookup_result->job_uid != (uid_t)-1)
		job->uid = job_lookup_result->job_uid;
	else if (row->now.uid != (uid_t)-1 && (job->uid == (uid_t)-1 || job->uid == 0))
		job->uid = row->now.uid;
}

static void assign_groups(struct group_table *table, struct process_table *processes, struct process_row *row)
{
	struct job_lookup_result job_lookup_result;
	if (!job_lookup_find(table->env, row->now.pid, table->wanted[MONITOR_JOBS], table->scratch,
		    &job_lookup_result) &&
		row->n_lookups > 0)
		return;
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		if (table->wanted[k] && job_lookup_result.names[k][0] != '\0')
			row->group[k] = find_or_add(table, k, job_lookup_result.names[k]);
	// If the environment is unreadable, the process inherits its parent's job.
	const struct process_row *parent = row->n_lookups == 0 ? process_table_find(processes, row->now.ppid) : NULL;
	if (job_lookup_result.names[MONITOR_JOBS][0] == '\0' && parent != NULL)
		row->group[MONITOR_JOBS] = parent->group[MONITOR_JOBS];
	if (row->group[MONITOR_JOBS] != 0)
		take_owner(&table->groups[MONITOR_JOBS][row->group[MONITOR_JOBS] - 1], &job_lookup_result, row);
}

static void free_empty(struct group_table *table)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		for (size_t i = 0; i < table->n[k]; i++)
			if (table->groups[k][i].processes == 0)
				table->groups[k][i].name[0] = '\0';
}

void group_table_update(struct group_table *table, struct process_table *processes)
{
	if (table->scratch == NULL)
		return;
	for (size_t i = 0; i < processes->n; i++) {
		struct process_row *row = &processes->rows[i];
		bool is_due = row->n_lookups < RECHECK_FIRST ||
			row->n_lookups % RECHECK_PERIOD == (uint32_t)row->now.pid % RECHECK_PERIOD;
		if (is_due)
			assign_groups(table, processes, row);
		row->n_lookups++;
	}
}

/* ---- sums ---- */

static void clear(struct monitor_group *group)
{
	const double none = (double)NAN;
	group->processes = 0;
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		group->added_j[r] = 0;
	group->added_cpu_s = 0;
	group->power_w = group->cpu_cores = group->gpu_percent = none;
	group->rss_bytes = group->gpu_memory_bytes = VALUE_MISSING;
}

static int64_t add_value(int64_t sum, int64_t part)
{
	if (!value_ok(part))
		return sum;
	return value_ok(sum) ? sum + part : part;
}

static void add(struct monitor_group *group, const struct process_row *row)
{
	group->processes++;
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		group->added_j[r] += row->added_j[r];
	group->added_cpu_s += value_ok(row->used_ns) ? (double)row->used_ns / 1e9 : 0;
	group->power_w = nan_sum(group->power_w, row->now.power_w);
	group->cpu_cores = nan_sum(group->cpu_cores, row->now.cpu_cores);
	group->gpu_percent = nan_sum(group->gpu_percent, row->now.gpu_percent);
	group->rss_bytes = add_value(group->rss_bytes, row->now.rss_bytes);
	group->gpu_memory_bytes = add_value(group->gpu_memory_bytes, row->now.gpu_memory_bytes);
}

void group_table_sum(struct group_table *table, const struct process_table *processes)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++) {
		for (size_t i = 0; i < table->n[k]; i++)
			clear(&table->groups[k][i]);
		for (size_t i = 0; table->wanted[k] && i < processes->n; i++)
			if (processes->rows[i].group[k] != 0)
				add(&table->groups[k][processes->rows[i].group[k] - 1], &processes->rows[i]);
	}
	free_empty(table);
}
