#include "serve/view.h"

#include <errno.h>

int trail_init(struct trail *trail, size_t n_domains)
{
	*trail = (struct trail){.n_domains = n_domains};
	trail->domains = calloc_array(n_domains, sizeof(*trail->domains));
	return trail->domains != NULL ? 0 : -ENOMEM;
}

void trail_finish(struct trail *trail)
{
	free(trail->domains);
	*trail = (struct trail){0};
}

static void add_domain(float (*columns)[TRAIL_LOOKS], size_t at, const struct now_domain *domain)
{
	columns[TRAIL_POWER_W][at] = (float)domain->power_w;
#define DEVICE_LIVE(id, member, ...) columns[TRAIL_##id][at] = (float)domain->member;
#include "metric/metrics.def"
}

void trail_add(struct trail *trail, const struct now *now)
{
	size_t at = trail->next;
	const double values[TRAIL_COLUMNS] = {
		[TRAIL_TOTAL_W] = now->total_w,
		[TRAIL_TARGET_W] = now->sum.target_w,
		[TRAIL_OTHERS_W] = now->sum.others_w,
		[TRAIL_OWN_W] = now->sum.own_w,
		[TRAIL_IDLE_W] = now->sum.idle_w,
		[TRAIL_UNATTRIBUTED_W] = now->sum.unattributed_w,
		[TRAIL_BUSY_CORES] = now->busy_cores,
		[TRAIL_MEMORY_BYTES] = value_to_double(now->memory_used_bytes, 1),
	};
	trail->t_ns[at] = now->t_ns;
	for (size_t i = 0; i < TRAIL_COLUMNS; i++)
		trail->columns[i][at] = (float)values[i];
	for (size_t i = 0; i < trail->n_domains; i++)
		add_domain(trail->domains[i], at, &now->domains[i]);
	trail->next = (at + 1) % TRAIL_LOOKS;
	if (trail->n < TRAIL_LOOKS)
		trail->n++;
}

size_t trail_place(const struct trail *trail, size_t i)
{
	return (trail->next + TRAIL_LOOKS - trail->n + i) % TRAIL_LOOKS;
}
