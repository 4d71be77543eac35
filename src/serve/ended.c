#include "serve/ended.h"

#include "base/known.h"
#include "base/util.h"

#include <errno.h>

int ended_init(struct ended_list *list, size_t most)
{
	*list = (struct ended_list){.most = most, .items = calloc_array(most, sizeof(struct ended_process))};
	return list->items != NULL ? 0 : -ENOMEM;
}

void ended_finish(struct ended_list *list)
{
	free(list->items);
	*list = (struct ended_list){0};
}

// By energy; where nothing is metered by CPU time.
static bool used_less(const struct now_process *left, const struct now_process *right)
{
	double l = isnan(left->energy_j) ? -1 : left->energy_j, r = isnan(right->energy_j) ? -1 : right->energy_j;
	return l != r ? l < r : left->cpu_ns < right->cpu_ns;
}

static struct ended_process *place_for(struct ended_list *list, const struct now_process *process)
{
	if (list->n < list->most)
		return &list->items[list->n++];
	struct ended_process *least = &list->items[0];
	for (size_t i = 1; i < list->n; i++)
		if (used_less(&list->items[i].now, &least->now))
			least = &list->items[i];
	return used_less(&least->now, process) ? least : NULL;
}

static void add(struct ended_list *list, const struct now_process *process, uint64_t look, int64_t t_ns)
{
	struct ended_process *place = ended_has(list, process) ? NULL : place_for(list, process);
	if (place != NULL)
		*place = (struct ended_process){*process, look, t_ns};
}

void ended_look(struct ended_list *list, const struct now *now, uint64_t look)
{
	for (size_t i = 0; list->most > 0 && i < now->n_processes; i++) {
		const struct now_process *process = &now->processes[i];
		bool used_any = process->energy_j > 0 || process->cpu_ns > 0; // a missing value is less
		if (process->is_gone && used_any)
			add(list, process, look, now->t_ns);
	}
}

void ended_forget(struct ended_list *list, const struct told_seen *seen)
{
	size_t kept = 0;
	if (seen->look == 0)
		return;
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].look > seen->look || list->items[i].t_ns > seen->t_ns)
			list->items[kept++] = list->items[i];
	list->n = kept;
}

bool ended_has(const struct ended_list *list, const struct now_process *process)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].now.pid == process->pid && strcmp(list->items[i].now.command, process->command) == 0)
			return true;
	return false;
}
