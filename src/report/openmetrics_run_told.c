// What the program itself told, and what its code blocks came to.
#include "report/openmetrics_run_parts.h"

#include "base/util.h"

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
	om_run_family(w, &(struct om_family){"wattle_metric", OM_GAUGE, NULL, "What the program itself reported."});
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(sorted[i - 1]->name, sorted[i]->name) != 0)
			om_run_series(w, "name", sorted[i]->name);
		om_run_put(w, sorted[i]->t_ns, sorted[i]->value);
	}
	return 0;
}

static double calls(const struct block_finding *block)
{
	return (double)block->calls;
}

static double compute_time_s(const struct block_finding *block)
{
	return block->compute_time_s.total;
}

static double energy_j(const struct block_finding *block)
{
	return block->total_j;
}

static double error_j(const struct block_finding *block)
{
	return block->error_j;
}

static const struct {
	struct om_family family;
	double (*of)(const struct block_finding *);
} rows[] = {
	{{"wattle_block_calls", OM_COUNTER, NULL, "Calls of the code block."}, calls},
	{{"wattle_block_compute_seconds", OM_COUNTER, "seconds", "Time of all calls of the code block, added up."},
		compute_time_s},
	{{"wattle_block_energy_joules", OM_COUNTER, "joules",
		 "Energy that the target was attributed while the code block ran."},
		energy_j},
	{{"wattle_block_energy_error_joules", OM_GAUGE, "joules", "Half of the 95 % interval of that energy."},
		error_j},
};

int om_run_told(struct om_run *w)
{
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		om_run_family(w, &rows[r].family);
		for (size_t i = 0; i < w->findings->n_blocks; i++) {
			om_run_series(w, "block", w->findings->blocks[i].name);
			om_run_put_end(w, rows[r].of(&w->findings->blocks[i]));
		}
	}
	return write_user_metrics(w);
}
