// What the program itself told, and what its code blocks came to.
#include "report/openmetrics/run_parts.h"

#include "base/util.h"
#include "report/fields/document.h"
#include "report/section/grid.h"

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

static const struct {
	enum om_id family;
	const char *key; // of a block
} rows[] = {
	{FAMILY_BLOCK_CALLS, "num_calls"},
	{FAMILY_BLOCK_TIME, "compute_time.total"},
	{FAMILY_BLOCK_ENERGY, "energy.total_j"},
	{FAMILY_BLOCK_ENERGY_ERROR, "energy.error_j"},
};

int om_run_told(struct om_run *w)
{
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		om_run_family(w, &om_families[rows[r].family]);
		for (size_t i = 0; i < w->findings->n_blocks; i++) {
			const struct object_at block = {.type = &block_type, .data = &w->findings->blocks[i]};
			om_run_series(w, "block", w->findings->blocks[i].name);
			om_run_put_end(w, row_number(&block, NULL, rows[r].key));
		}
	}
	return write_user_metrics(w);
}
