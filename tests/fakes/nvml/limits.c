/* Limits and locked clocks of a card in the order in which they took effect. */
#include "fake.h"

#include <math.h>

unsigned int fake_limit_mw(const struct fake_view *view)
{
	const struct fake_log *log = &view->logs->of[FAKE_LIMITS];
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

/* The effective limit between two changes. A limit that is approached moves in steps of an eighth of the time
 * constant, on a grid that begins with its change: so the result is the same for every caller and interval. */
struct effect {
	struct fake_bound bound;
	double from_mw, to_mw, since_s, approach_s; // of the limit
};
static const double APPROACH_STEPS = 8, APPROACHED = 8; // steps in a time constant, time constants until it is reached

static double step_s(const struct effect *effect)
{
	return effect->approach_s / APPROACH_STEPS;
}

static double step_at(const struct effect *effect, double t_s)
{
	return floor((t_s - effect->since_s) / step_s(effect) + 1e-9);
}

static bool is_approaching(const struct effect *effect, double t_s)
{
	return effect->approach_s > 0 && t_s < effect->since_s + APPROACHED * effect->approach_s;
}

static double limit_in_effect_mw(const struct effect *effect, double t_s)
{
	if (!is_approaching(effect, t_s))
		return effect->to_mw;
	double middle = (step_at(effect, t_s) + 0.5) / APPROACH_STEPS; // in time constants
	return effect->to_mw + (effect->from_mw - effect->to_mw) * exp(-middle);
}

// The intervals between two changes.
static void emit(const struct fake_gpu *gpu, struct effect *effect, double at_s, double until_s, fake_stretch *each,
	void *data)
{
	double next_s;
	do {
		effect->bound.limit_mw = fmin(limit_in_effect_mw(effect, at_s), gpu->enforced_mw);
		next_s = until_s;
		if (is_approaching(effect, at_s))
			next_s = fmin(until_s, effect->since_s + (step_at(effect, at_s) + 1) * step_s(effect));
		each(gpu, effect->bound, at_s, next_s, data);
		at_s = next_s;
	} while (next_s < until_s);
}

static void change(struct effect *effect, size_t log, unsigned int value, double t_s)
{
	switch (log) {
	case FAKE_LIMITS:
		effect->from_mw = limit_in_effect_mw(effect, t_s);
		effect->to_mw = value;
		effect->since_s = t_s;
		break;
	case FAKE_CLOCKS:
		effect->bound.clock_mhz = clock_of(value);
		break;
	default:
		effect->bound.rests = value == 0;
	}
}

void fake_stretches(const struct fake_view *view, double from_s, double until_s, fake_stretch *each, void *data)
{
	const struct fake_gpu *gpu = view->gpu;
	double delay_s = (double)gpu->limit_delay_ms * 1e-3, at_s = from_s;
	struct effect effect = {.bound = {INFINITY, INFINITY, gpu->rests},
		.from_mw = gpu->limit_mw,
		.to_mw = gpu->limit_mw,
		.since_s = -INFINITY,
		.approach_s = gpu->limit_approach_s};
	size_t next[FAKE_LOGS] = {0};
	for (;;) {
		size_t first = 0;
		double at[FAKE_LOGS] = {INFINITY, INFINITY, INFINITY};
		for (size_t i = 0; i < (gpu->rests ? FAKE_LOGS : FAKE_WORK); i++) {
			at[i] = effect_s(view, &view->logs->of[i], &next[i], i == FAKE_WORK ? 0 : delay_s);
			first = at[i] < at[first] ? i : first;
		}
		if (at[first] > until_s)
			break;
		if (at[first] > at_s) {
			emit(gpu, &effect, at_s, at[first], each, data);
			at_s = at[first];
		}
		change(&effect, first, view->logs->of[first].changes[next[first]++].value, at[first]);
	}
	emit(gpu, &effect, at_s, until_s, each, data);
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
