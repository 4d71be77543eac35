#include "serve/view.h"

#include "base/util.h"

/* ---- who comes first ---- */

static int by_value(double a, double b)
{
	a = isnan(a) ? -1 : a;
	b = isnan(b) ? -1 : b;
	return (a < b) - (a > b);
}

static int compare(const void *a, const void *b)
{
	const struct now_process *left = *(const struct now_process *const *)a,
				 *right = *(const struct now_process *const *)b;
	int order = by_value(left->power_w, right->power_w);
	if (order == 0)
		order = by_value(left->cpu_cores, right->cpu_cores);
	if (order == 0)
		order = by_value((double)left->rss_bytes, (double)right->rss_bytes);
	return order != 0 ? order : (left->pid > right->pid) - (left->pid < right->pid);
}

const struct now_process **view_ranked(const struct now *now, size_t *ret_n)
{
	const struct now_process **ranked = calloc_array(now->n_processes, sizeof(const struct now_process *));
	if (ranked == NULL)
		return NULL;
	for (size_t i = 0; i < now->n_processes; i++)
		ranked[i] = &now->processes[i];
	qsort(ranked, now->n_processes, sizeof(*ranked), compare);
	*ret_n = now->n_processes < VIEW_PROCESSES ? now->n_processes : VIEW_PROCESSES;
	return ranked;
}
