// Custom metrics of the program, and totals of its code blocks.
#include "report/openmetrics/internal.h"

#include <errno.h>

static int by_name_and_time(const void *left, const void *right)
{
	const struct run_user_metric *a = *(const struct run_user_metric *const *)left,
				     *b = *(const struct run_user_metric *const *)right;
	int by_name = a->name == b->name ? 0 : strcmp(a->name, b->name);
	return by_name != 0 ? by_name : (a->t_ns > b->t_ns) - (a->t_ns < b->t_ns);
}

static int write_user_metrics(struct om_run *w)
{
	size_t n = w->run->n_user_metrics;
	const struct run_user_metric **sorted = arena_alloc(w->arena, n, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &w->run->user_metrics[i];
	if (n > 1)
		qsort(sorted, n, sizeof(*sorted), by_name_and_time);
	om_run_family(w, &om_families[FAMILY_USER_METRIC]);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(sorted[i - 1]->name, sorted[i]->name) != 0)
			om_run_series(w, "name", sorted[i]->name);
		om_run_put(w, sorted[i]->t_ns, sorted[i]->value);
	}
	return 0;
}

// Writes one series per block. member_: member of struct block_finding, accessible through `block`.
#define BLOCK_FAMILY(member_, name_, type_, unit_, help_)                                                              \
	om_run_family(w, &(struct om_family){name_, OM_##type_, unit_, help_});                                        \
	for (const struct block_finding *block = blocks; block < blocks + w->findings->n_blocks; block++) {            \
		om_run_series(w, "block", block->name);                                                                \
		om_run_put_end(w, (double)block->member_);                                                             \
	}

int om_run_custom_metrics(struct om_run *w)
{
	const struct block_finding *blocks = w->findings->blocks;
#include "metric/blocks.def"
	return write_user_metrics(w);
}
