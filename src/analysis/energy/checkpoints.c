#include "analysis/energy/checkpoints.h"

#include "base/util.h"

#include <errno.h>

int moments_init(struct moments *moments, const struct findings *findings, const struct metering *metering,
	const struct windows *windows, struct arena *arena)
{
	*moments = (struct moments){.findings = findings,
		.walks = arena_alloc(arena, findings->n_domains, sizeof(struct attribution_walk)),
		.cpu = {.windows = windows},
		.doubts = arena_alloc(arena, findings->n_domains, sizeof(struct moment_doubt)),
		.doubted = MOMENT_NONE,
		.free = MOMENT_NONE,
		.now = MOMENT_NONE};
	if (moments->walks == NULL || moments->doubts == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < findings->n_domains && windows->n > 0; d++) {
		if (isnan(findings->domains[d].energy_j))
			continue;
		moments->walks[d] = attribution_walk_begin(&metering->domains[d].attribution);
		moments->any_energy |= findings->domains[d].in_total;
	}
	return 0;
}

void moments_finish(struct moments *moments)
{
	free(moments->at);
	free(moments->points);
	moments->at = NULL;
	moments->points = NULL;
}

static bool grow(struct moments *moments)
{
	size_t n = moments->capacity > 0 ? moments->capacity * 2 : 64;
	struct moment *at = realloc_array(moments->at, n, sizeof(*at));
	if (at == NULL)
		return false;
	moments->at = at;
	struct attribution_point *points = realloc_array(moments->points, n,
		(moments->findings->n_domains + 1) * sizeof(*points));
	if (points == NULL)
		return false;
	moments->points = points;
	moments->capacity = n;
	return true;
}

// Provides an entry for another moment: an entry that is no longer held, or a new one.
static int make_room(struct moments *moments)
{
	if (moments->now != MOMENT_NONE && moments->at[moments->now].held == 0)
		return 0;
	if (moments->free != MOMENT_NONE) {
		moments->now = moments->free;
		moments->free = moments->at[moments->now].next_free;
		return 0;
	}
	if (moments->n == moments->capacity && !grow(moments))
		return -ENOMEM;
	moments->now = (uint32_t)moments->n++;
	return 0;
}

// CPU time grows linearly within a window. It is constant where no window measured it.
static void measure_cpu(struct cpu_walk *walk, int64_t t_ns, struct moment *moment)
{
	const struct windows *windows = walk->windows;
	double ns = walk->before_ns, unknown_ns = walk->unknown_before_ns;
	for (const struct window *w = &walk->window; walk->index < windows->n; walk->index++) {
		if (walk->taken == walk->index)
			walk->window = windows_at(windows, walk->taken++);
		double part = t_ns <= w->begin_ns ? 0 : 1, length_ns = (double)(w->end_ns - w->begin_ns);
		if (part > 0 && t_ns < w->end_ns)
			part = (double)(t_ns - w->begin_ns) / length_ns;
		ns = walk->before_ns + (isnan(w->target_ns) ? 0 : part * w->target_ns);
		unknown_ns = walk->unknown_before_ns + (isnan(w->target_ns) ? part * length_ns : 0);
		if (t_ns < w->end_ns)
			break;
		walk->before_ns = ns;
		walk->unknown_before_ns = unknown_ns;
	}
	moment->cpu_ns = ns;
	moment->cpu_unknown_ns = unknown_ns;
}

int moments_go_to(struct moments *moments, int64_t t_ns)
{
	const struct findings *f = moments->findings;
	if (moments->now != MOMENT_NONE && moments->at[moments->now].t_ns == t_ns)
		return 0;
	if (make_room(moments) < 0)
		return -ENOMEM;
	struct moment *moment = &moments->at[moments->now];
	struct attribution_point *points = &moments->points[moments->now * f->n_domains];
	*moment = (struct moment){.t_ns = t_ns};
	moments->doubted = MOMENT_NONE;
	measure_cpu(&moments->cpu, t_ns, moment);
	for (size_t d = 0; d < f->n_domains; d++) {
		struct attribution_walk *walk = &moments->walks[d];
		if (walk->attribution == NULL)
			continue;
		attribution_walk_to(walk, t_ns, &points[d]);
		if (!f->domains[d].in_total)
			continue;
		attribution_walk_edge(walk, &points[d]);
		moment->target_j += points[d].part.target_j;
	}
	return 0;
}

void moments_let_go(struct moments *moments, uint32_t number)
{
	struct moment *moment = &moments->at[number];
	if (--moment->held > 0 || number == moments->now)
		return;
	moment->next_free = moments->free;
	moments->free = number;
}

/* Caches the latest result: a block's open time is very often also its own (self) time. */
static void doubt_since(struct moments *moments, uint32_t since)
{
	const struct findings *f = moments->findings;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct attribution_walk *walk = &moments->walks[d];
		if (!f->domains[d].in_total || walk->attribution == NULL)
			continue;
		const struct attribution_point *from = moments_point(moments, since, d),
					       *to = moments_point(moments, moments->now, d);
		moments->doubts[d].edge = edge_walked(&walk->edge, &from->edge, &to->edge);
		moments->doubts[d].uneven = attribution_uneven(from, to);
	}
	moments->doubted = since;
}

void moments_add_errors(struct moments *moments, uint32_t since, double fraction, struct part_error *errors)
{
	const struct findings *f = moments->findings;
	if (moments->doubted != since)
		doubt_since(moments, since);
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct moment_doubt *doubt = &moments->doubts[d];
		if (!f->domains[d].in_total || moments->walks[d].attribution == NULL)
			continue;
		part_error_add(&errors[d], &doubt->edge, moments_point(moments, since, d),
			moments_point(moments, moments->now, d), fraction);
		errors[d].linear_j += fraction * doubt->uneven.linear_j;
		errors[d].variance_j2 += fraction * fraction * doubt->uneven.variance_j2;
	}
}
