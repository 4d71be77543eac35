/* What holds a card down, and since when: limits and locked clocks in the order in which they took effect. */
#include "fake.h"

#include <math.h>

unsigned int fake_limit_mw(const struct fake_view *view)
{
	const struct fake_log *log = &view->logs->limits;
	unsigned int limit_mw = view->gpu->limit_mw;
	for (size_t i = 0; i < log->n; i++) {
		const struct fake_change *change = &log->changes[i];
		if (change->index == view->index && change->t_ns <= view->config->epoch_ns + view->t_ns)
			limit_mw = change->value;
	}
	return limit_mw;
}

// The next change of this card in a log, from *i on; INFINITY: none.
static double effect_s(const struct fake_view *view, const struct fake_log *log, size_t *i, double delay_s)
{
	while (*i < log->n && log->changes[*i].index != view->index)
		(*i)++;
	return *i < log->n ? (double)(log->changes[*i].t_ns - view->config->epoch_ns) * 1e-9 + delay_s : INFINITY;
}

static double clock_of(unsigned int mhz)
{
	return mhz > 0 ? mhz : INFINITY;
}

void fake_stretches(const struct fake_view *view, double from_s, double until_s, fake_stretch *each, void *data)
{
	const struct fake_log *limits = &view->logs->limits, *clocks = &view->logs->clocks;
	const struct fake_gpu *gpu = view->gpu;
	double delay_s = (double)gpu->limit_delay_ms * 1e-3, other_mw = gpu->enforced_mw, at_s = from_s;
	struct fake_bound bound = {fmin(gpu->limit_mw, other_mw), INFINITY};
	size_t limit = 0, clock = 0;
	for (;;) {
		double limit_s = effect_s(view, limits, &limit, delay_s);
		double clock_s = effect_s(view, clocks, &clock, delay_s);
		double next_s = fmin(limit_s, clock_s);
		if (next_s > until_s)
			break;
		if (next_s > at_s) {
			each(gpu, bound, at_s, next_s, data);
			at_s = next_s;
		}
		if (limit_s <= clock_s)
			bound.limit_mw = fmin(limits->changes[limit++].value, other_mw);
		else
			bound.clock_mhz = clock_of(clocks->changes[clock++].value);
	}
	each(gpu, bound, at_s, until_s, data);
}

static void keep_bound(const struct fake_gpu *gpu, struct fake_bound bound, double from_s, double until_s, void *data)
{
	(void)gpu, (void)from_s, (void)until_s;
	*(struct fake_bound *)data = bound;
}

struct fake_bound fake_bound_at(const struct fake_view *view, double t_s)
{
	struct fake_bound bound;
	fake_stretches(view, t_s, t_s, keep_bound, &bound);
	return bound;
}

static void add_energy(const struct fake_gpu *gpu, struct fake_bound bound, double from_s, double until_s, void *data)
{
	double *mj = data;
	*mj += fake_energy_mj(gpu, bound, until_s) - fake_energy_mj(gpu, bound, from_s);
}

double fake_limited_energy_mj(const struct fake_view *view, double t_s)
{
	double mj = 0;
	fake_stretches(view, 0, t_s, add_energy, &mj);
	return mj;
}
