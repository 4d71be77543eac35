#include "monitor/internal.h"

#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>

/* Looks up the groups of a process at its first two samples, because a launcher may move it just after the start, and then
 * every 32nd sample, because some move late. Reading two files of each process at each sample would cost more than all
 * other work. */
enum { ASK_EVERY = 32, ASK_FIRST = 2 };

int group_table_open(struct group_table *table, const struct now_options *options)
{
	*table = (struct group_table){.env = options->env};
	bool any = false;
	for (int k = 0; k < NOW_GROUPINGS; k++)
		any = (table->wanted[k] = options->groups[k]) || any;
	if (!any)
		return 0;
	table->scratch = malloc(BELONG_SCRATCH);
	return table->scratch != NULL ? 0 : -ENOMEM;
}

void group_table_close(struct group_table *table)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		free(table->groups[k]);
	free(table->scratch);
	*table = (struct group_table){0};
}

/* ---- lookup ---- */

static bool is_free(const struct now_group *group)
{
	return group->name[0] == '\0';
}

// Returns index + 1; 0: no memory, the process gets no group.
static uint32_t find_or_add(struct group_table *table, int k, const char *name)
{
	size_t place = table->n[k];
	for (size_t i = 0; i < table->n[k]; i++) {
		if (strcmp(table->groups[k][i].name, name) == 0)
			return (uint32_t)i + 1;
		if (is_free(&table->groups[k][i]) && place == table->n[k])
			place = i;
	}
	if (place == table->n[k]) {
		struct now_group *larger = array_with_room(table->groups[k], table->n[k], &table->room[k],
			sizeof(*larger), 16);
		if (larger == NULL)
			return 0;
		table->groups[k] = larger;
		table->n[k]++;
	}
	table->groups[k][place] = (struct now_group){.uid = (uid_t)-1};
	text_copy(table->groups[k][place].name, NOW_GROUP_SIZE, name);
	return (uint32_t)place + 1;
}

// The owner of a job is its user, not root as the daemon that started it. A job with root processes only belongs to root.
static void take_owner(struct now_group *job, const struct belonging *belonging, const struct process_row *row)
{
	if (belonging->job_uid != (uid_t)-1)
		job->uid = belonging->job_uid;
	else if (row->now.uid != (uid_t)-1 && (job->uid == (uid_t)-1 || job->uid == 0))
		job->uid = row->now.uid;
}

static void place(struct group_table *table, struct process_table *processes, struct process_row *row)
{
	struct belonging belonging;
	if (!belong_find(table->env, row->now.pid, table->wanted[NOW_JOBS], table->scratch, &belonging) &&
		row->asked > 0)
		return;
	for (int k = 0; k < NOW_GROUPINGS; k++)
		if (table->wanted[k] && belonging.names[k][0] != '\0')
			row->group[k] = find_or_add(table, k, belonging.names[k]);
	// If the environment is unreadable, the process inherits its parent's job.
	const struct process_row *parent = row->asked == 0 ? process_table_find(processes, row->now.ppid) : NULL;
	if (belonging.names[NOW_JOBS][0] == '\0' && parent != NULL)
		row->group[NOW_JOBS] = parent->group[NOW_JOBS];
	if (row->group[NOW_JOBS] != 0)
		take_owner(&table->groups[NOW_JOBS][row->group[NOW_JOBS] - 1], &belonging, row);
}

static void free_empty(struct group_table *table)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		for (size_t i = 0; i < table->n[k]; i++)
			if (table->groups[k][i].processes == 0)
				table->groups[k][i].name[0] = '\0';
}

void group_table_look(struct group_table *table, struct process_table *processes)
{
	if (table->scratch == NULL)
		return;
	for (size_t i = 0; i < processes->n; i++) {
		struct process_row *row = &processes->rows[i];
		bool is_due = row->asked < ASK_FIRST || row->asked % ASK_EVERY == (uint32_t)row->now.pid % ASK_EVERY;
		if (is_due)
			place(table, processes, row);
		row->asked++;
	}
}

/* ---- sums ---- */

static void clear(struct now_group *group)
{
	const double none = (double)NAN;
	group->processes = 0;
	for (int r = 0; r < NOW_RESOURCES; r++)
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

static void add(struct now_group *group, const struct process_row *row)
{
	group->processes++;
	for (int r = 0; r < NOW_RESOURCES; r++)
		group->added_j[r] += row->added_j[r];
	group->added_cpu_s += value_ok(row->used_ns) ? (double)row->used_ns / 1e9 : 0;
	group->power_w = add_known(group->power_w, row->now.power_w);
	group->cpu_cores = add_known(group->cpu_cores, row->now.cpu_cores);
	group->gpu_percent = add_known(group->gpu_percent, row->now.gpu_percent);
	group->rss_bytes = add_value(group->rss_bytes, row->now.rss_bytes);
	group->gpu_memory_bytes = add_value(group->gpu_memory_bytes, row->now.gpu_memory_bytes);
}

void group_table_sum(struct group_table *table, const struct process_table *processes)
{
	for (int k = 0; k < NOW_GROUPINGS; k++) {
		for (size_t i = 0; i < table->n[k]; i++)
			clear(&table->groups[k][i]);
		for (size_t i = 0; table->wanted[k] && i < processes->n; i++)
			if (processes->rows[i].group[k] != 0)
				add(&table->groups[k][processes->rows[i].group[k] - 1], &processes->rows[i]);
	}
	free_empty(table);
}
