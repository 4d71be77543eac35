#include "analysis/energy/checkpoints.h"

#include "base/util.h"

#include <errno.h>

int checkpoints_init(struct checkpoints *checkpoints, const struct findings *findings, const struct metering *metering,
	const struct windows *windows, struct arena *arena)
{
	*checkpoints = (struct checkpoints){.findings = findings,
		.walks = arena_alloc(arena, findings->n_domains, sizeof(struct attribution_walk)),
		.cpu = {.windows = windows},
		.uncertainties = arena_alloc(arena, findings->n_domains, sizeof(struct checkpoint_uncertainty)),
		.uncertain_from = CHECKPOINT_NONE,
		.free = CHECKPOINT_NONE,
		.now = CHECKPOINT_NONE};
	if (checkpoints->walks == NULL || checkpoints->uncertainties == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < findings->n_domains && windows->n > 0; d++) {
		if (isnan(findings->domains[d].energy_j))
			continue;
		checkpoints->walks[d] = attribution_walk_begin(&metering->domains[d].attribution, NULL);
		checkpoints->any_energy |= findings->domains[d].in_total;
	}
	return 0;
}

void checkpoints_finish(struct checkpoints *checkpoints)
{
	free(checkpoints->at);
	free(checkpoints->points);
	checkpoints->at = NULL;
	checkpoints->points = NULL;
}

static bool grow(struct checkpoints *checkpoints)
{
	size_t n = checkpoints->capacity > 0 ? checkpoints->capacity * 2 : 64;
	struct checkpoint *at = realloc_array(checkpoints->at, n, sizeof(*at));
	if (at == NULL)
		return false;
	checkpoints->at = at;
	struct attribution_point *points = realloc_array(checkpoints->points, n,
		(checkpoints->findings->n_domains + 1) * sizeof(*points));
	if (points == NULL)
		return false;
	checkpoints->points = points;
	checkpoints->capacity = n;
	return true;
}

// Provides an entry for another moment: an entry that is no longer held, or a new one.
static int make_room(struct checkpoints *checkpoints)
{
	if (checkpoints->now != CHECKPOINT_NONE && checkpoints->at[checkpoints->now].held == 0)
		return 0;
	if (checkpoints->free != CHECKPOINT_NONE) {
		checkpoints->now = checkpoints->free;
		checkpoints->free = checkpoints->at[checkpoints->now].next_free;
		return 0;
	}
	if (checkpoints->n == checkpoints->capacity && !grow(checkpoints))
		return -ENOMEM;
	checkpoints->now = (uint32_t)checkpoints->n++;
	return 0;
}

// CPU time grows linearly within a window. It is constant where no window measured it.
static void measure_cpu(struct cpu_walk *walk, int64_t t_ns, struct checkpoint *checkpoint)
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
	checkpoint->cpu_ns = ns;
	checkpoint->cpu_unknown_ns = unknown_ns;
}

int checkpoints_go_to(struct checkpoints *checkpoints, int64_t t_ns)
{
	const struct findings *f = checkpoints->findings;
	if (checkpoints->now != CHECKPOINT_NONE && checkpoints->at[checkpoints->now].t_ns == t_ns)
		return 0;
	if (make_room(checkpoints) < 0)
		return -ENOMEM;
	struct checkpoint *checkpoint = &checkpoints->at[checkpoints->now];
	struct attribution_point *points = &checkpoints->points[checkpoints->now * f->n_domains];
	*checkpoint = (struct checkpoint){.t_ns = t_ns};
	checkpoints->uncertain_from = CHECKPOINT_NONE;
	measure_cpu(&checkpoints->cpu, t_ns, checkpoint);
	for (size_t d = 0; d < f->n_domains; d++) {
		struct attribution_walk *walk = &checkpoints->walks[d];
		if (walk->attribution == NULL)
			continue;
		attribution_walk_to(walk, t_ns, &points[d]);
		if (!f->domains[d].in_total)
			continue;
		attribution_walk_edge(walk, &points[d]);
		checkpoint->target_j += points[d].part.target_j;
	}
	return 0;
}

void checkpoints_release(struct checkpoints *checkpoints, uint32_t number)
{
	struct checkpoint *checkpoint = &checkpoints->at[number];
	if (--checkpoint->held > 0 || number == checkpoints->now)
		return;
	checkpoint->next_free = checkpoints->free;
	checkpoints->free = number;
}

/* Caches the latest result: a block's open time is very often also its own (self) time. */
static void uncertainty_since(struct checkpoints *checkpoints, uint32_t since)
{
	const struct findings *f = checkpoints->findings;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct attribution_walk *walk = &checkpoints->walks[d];
		if (!f->domains[d].in_total || walk->attribution == NULL)
			continue;
		const struct attribution_point *from = checkpoints_point(checkpoints, since, d),
					       *to = checkpoints_point(checkpoints, checkpoints->now, d);
		checkpoints->uncertainties[d].edge = edge_walked(&walk->edge, &from->edge, &to->edge);
		checkpoints->uncertainties[d].imbalance = attribution_imbalance(from, to);
	}
	checkpoints->uncertain_from = since;
}

void checkpoints_add_errors(struct checkpoints *checkpoints, uint32_t since, double fraction, struct part_error *errors)
{
	const struct findings *f = checkpoints->findings;
	if (checkpoints->uncertain_from != since)
		uncertainty_since(checkpoints, since);
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct checkpoint_uncertainty *uncertainty = &checkpoints->uncertainties[d];
		if (!f->domains[d].in_total || checkpoints->walks[d].attribution == NULL)
			continue;
		part_error_add(&errors[d], &uncertainty->edge, checkpoints_point(checkpoints, since, d),
			checkpoints_point(checkpoints, checkpoints->now, d), fraction);
		errors[d].linear_j += fraction * uncertainty->imbalance.linear_j;
		errors[d].variance_j2 += fraction * fraction * uncertainty->imbalance.variance_j2;
	}
}
