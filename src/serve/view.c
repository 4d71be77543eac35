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

/* ---- clocks held back ---- */

// NVML's reasons. That a GPU is idle, or has the clocks that somebody chose for it, is no reason to worry.
static const struct {
	int64_t bit;
	const char *words;
} reasons[] = {
	{0x4, "power limit"},
	{0x8, "hardware slowdown"},
	{0x10, "waits for other GPUs' clocks"},
	{0x20, "hot (software slowdown)"},
	{0x40, "hot (hardware slowdown)"},
	{0x80, "power brake"},
};

bool view_is_throttled(const struct now_domain *domain)
{
	struct buf words;
	buf_init(&words, 1 << 10);
	view_throttling(domain, &words);
	bool any = words.size > 0;
	buf_finish(&words);
	return any;
}

void view_throttling(const struct now_domain *domain, struct buf *out)
{
	if (!value_ok(domain->throttle_bits))
		return;
	size_t before = out->size;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if ((domain->throttle_bits & reasons[i].bit) != 0)
			buf_printf(out, "%s%s", out->size > before ? ", " : "", reasons[i].words);
}
