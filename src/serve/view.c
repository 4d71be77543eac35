#include "serve/view.h"

#include "base/util.h"

/* ---- ranking ---- */

static int by_rank(const void *left, const void *right)
{
	return monitor_compare_use(*(const struct monitor_process *const *)left,
		*(const struct monitor_process *const *)right);
}

const struct monitor_process **view_ranked(const struct monitor_sample *now, size_t *ret_n)
{
	const struct monitor_process **ranked = calloc_array(now->n_processes, sizeof(const struct monitor_process *));
	if (ranked == NULL)
		return NULL;
	for (size_t i = 0; i < now->n_processes; i++)
		ranked[i] = &now->processes[i];
	qsort(ranked, now->n_processes, sizeof(*ranked), by_rank);
	*ret_n = now->n_processes < VIEW_PROCESSES ? now->n_processes : VIEW_PROCESSES;
	return ranked;
}
