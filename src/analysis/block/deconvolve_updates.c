/* Energies for the equations: that of the target or of all programs at each update of a counter. */
#include "analysis/block/deconvolve_internal.h"

#include "base/util.h"

#include <errno.h>

static const double same_part = 1e-9; // relative to all energy: energies that differ by less are the same

double deconvolve_target_j(const struct deconvolve_job *job, int64_t t_ns)
{
	return attribution_at(&job->used.attribution, t_ns).target_j;
}

static double bend(const double *sums, size_t k)
{
	return sums[k] - 2 * sums[k - 1] + sums[k - 2];
}

// Power per core of the other programs, from the changes of both between intervals.
static double core_w(const struct deconvolve_updates *u, const double *used_j, const double *others_s)
{
	double products = 0, squares = 0;
	for (size_t k = 2; k < u->n; k++) {
		products += bend(used_j, k) * bend(others_s, k);
		squares += bend(others_s, k) * bend(others_s, k);
	}
	return squares > 0 ? fmax(products / squares, 0) : 0;
}

/* CPU time comes in ticks of 10 ms, so the target's share of one interval has an error of some percent, which would
 * hide the differences between mixtures of blocks. A meter is a thousand times as exact, but includes the power changes
 * of other programs. The part correlated with their CPU time can be subtracted, which adds the noise of the ticks
 * again. The equations decide between the energies (deconvolve_misfit); their variation between intervals does not, because
 * most of it comes from the blocks. */
static void list_energies(struct deconvolve_updates *u, double *used_j, const double *others_s)
{
	size_t n = u->n;
	double *less_j = u->energies[DECONVOLVE_LESS_OTHERS];
	u->energies[DECONVOLVE_OF_TARGET] = u->j = u->target_j;
	u->energies[DECONVOLVE_LESS_OTHERS] = NULL;
	double used = n < 3 ? 0 : used_j[n - 1] - used_j[0], target = n < 3 ? 0 : u->target_j[n - 1] - u->target_j[0];
	if (!(used > 0) || !(target > 0))
		return;
	double others_w = core_w(u, used_j, others_s);
	double off_j = 0;
	u->target_share = target / used;
	for (size_t k = 0; k < n; k++) {
		double even_s = (others_s[n - 1] - others_s[0]) * (u->t_s[k] - u->t_s[0]) / (u->t_s[n - 1] - u->t_s[0]);
		less_j[k] = u->target_share * (used_j[k] - others_w * (others_s[k] - others_s[0] - even_s));
		used_j[k] *= u->target_share;
		off_j = fmax(off_j, fabs(used_j[k] - u->target_j[k]));
	}
	if (off_j > same_part * target)
		u->energies[DECONVOLVE_OF_ALL] = used_j;
	if (others_w > 0)
		u->energies[DECONVOLVE_LESS_OTHERS] = less_j;
}

void deconvolve_explain(struct deconvolve_updates *u, enum deconvolve_energy_kind energy)
{
	bool known = u->energies[energy] != NULL;
	u->j = known ? u->energies[energy] : u->target_j;
	u->even_share = known && energy != DECONVOLVE_OF_TARGET ? u->target_share : 0;
}

struct others_walk { // cumulative CPU time of other programs at ascending instants
	const struct windows *windows;
	size_t window;
	double before_s;
};

static double others_until_s(struct others_walk *walk, int64_t t_ns)
{
	for (; walk->window < walk->windows->n; walk->window++) {
		const struct window at = windows_at(walk->windows, walk->window), *window = &at;
		double s = fmax(window->busy_ns - window->target_ns, 0) / 1e9; // NaN: 0
		if (t_ns <= window->begin_ns)
			return walk->before_s;
		if (t_ns < window->end_ns)
			return walk->before_s +
				s * (double)(t_ns - window->begin_ns) / (double)(window->end_ns - window->begin_ns);
		walk->before_s += s;
	}
	return walk->before_s;
}

// Lists the updates in a segment; the points where the curve bends at the segment's ends are no updates.
int deconvolve_list_updates(const struct deconvolve_job *job, size_t index, struct deconvolve_updates *u)
{
	const struct curve *curve = &job->metering->curve;
	const struct curve_segment *segment = &curve->segments[index];
	size_t n = segment->points.end - segment->points.begin;
	*u = (struct deconvolve_updates){.start_ns = segment->start_ns,
		.length_s = (double)(segment->end_ns - segment->start_ns) / 1e9,
		.t_s = arena_alloc(job->arena, n, sizeof(double)),
		.within_s = arena_alloc(job->arena, n, sizeof(double)),
		.target_j = arena_alloc(job->arena, n, sizeof(double)),
		.energies[DECONVOLVE_LESS_OTHERS] = arena_alloc(job->arena, n, sizeof(double))};
	double *used_j = arena_alloc(job->arena, n, sizeof(double));
	double *others_s = arena_alloc(job->arena, n, sizeof(double));
	struct others_walk others = {.windows = job->metering->attribution.windows};
	if (u->t_s == NULL || u->within_s == NULL || u->target_j == NULL ||
		u->energies[DECONVOLVE_LESS_OTHERS] == NULL || used_j == NULL || others_s == NULL)
		return -ENOMEM;
	double before_j = deconvolve_target_j(job, segment->start_ns);
	double used_before_j = attribution_used_j(&job->used, segment->start_ns);
	for (size_t k = segment->points.begin; k < segment->points.end; k++) {
		if (curve->t_ns[k] <= segment->start_ns || curve->t_ns[k] >= segment->end_ns)
			continue;
		u->t_s[u->n] = (double)(curve->t_ns[k] - segment->start_ns) / 1e9;
		u->within_s[u->n] = curve->within_s[k];
		used_j[u->n] = attribution_used_j(&job->used, curve->t_ns[k]) - used_before_j;
		others_s[u->n] = job->cores != NULL ? others_until_s(&others, curve->t_ns[k]) : 0;
		u->target_j[u->n++] = deconvolve_target_j(job, curve->t_ns[k]) - before_j;
	}
	list_energies(u, used_j, others_s);
	// The others' CPU time is then correlated with the blocks; deconvolve_distribute subtracts it for each block.
	if (job->cores != NULL && job->cores->other_cores != NULL)
		u->energies[DECONVOLVE_LESS_OTHERS] = NULL;
	return 0;
}
