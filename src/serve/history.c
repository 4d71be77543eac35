#include "serve/view.h"

#include <errno.h>

int history_init(struct history *history, size_t n_domains)
{
	*history = (struct history){.n_domains = n_domains};
	history->domains = calloc_array(n_domains, sizeof(*history->domains));
	return history->domains != NULL ? 0 : -ENOMEM;
}

void history_finish(struct history *history)
{
	free(history->domains);
	*history = (struct history){0};
}

static void add_domain(float (*columns)[HISTORY_SAMPLES], size_t at, const struct monitor_domain *domain)
{
	columns[HISTORY_POWER_W][at] = (float)domain->power_w;
#define DEVICE_LIVE(id, member, ...) columns[HISTORY_##id][at] = (float)domain->member;
#include "metric/metrics.def"
}

void history_add(struct history *history, const struct monitor_sample *now)
{
	size_t at = history->next;
	const double values[HISTORY_COLUMNS] = {
		[HISTORY_TOTAL_W] = now->total_w,
		[HISTORY_TARGET_W] = now->sum.target_w,
		[HISTORY_OTHERS_W] = now->sum.others_w,
		[HISTORY_OWN_W] = now->sum.own_w,
		[HISTORY_IDLE_W] = now->sum.idle_w,
		[HISTORY_UNATTRIBUTED_W] = now->sum.unattributed_w,
		[HISTORY_BUSY_CORES] = now->busy_cores,
		[HISTORY_MEMORY_BYTES] = value_to_double(now->memory_used_bytes, 1),
	};
	history->t_ns[at] = now->t_ns;
	for (size_t i = 0; i < HISTORY_COLUMNS; i++)
		history->columns[i][at] = (float)values[i];
	for (size_t i = 0; i < history->n_domains; i++)
		add_domain(history->domains[i], at, &now->domains[i]);
	history->next = (at + 1) % HISTORY_SAMPLES;
	if (history->n < HISTORY_SAMPLES)
		history->n++;
}

size_t history_index(const struct history *history, size_t i)
{
	return (history->next + HISTORY_SAMPLES - history->n + i) % HISTORY_SAMPLES;
}
