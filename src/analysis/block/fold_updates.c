/* What the equations explain: the energy of the target or of all programs at each update of a counter. */
#include "analysis/block/fold_build.h"

#include "base/util.h"

#include <errno.h>

double fold_target_j(const struct fold_job *job, int64_t t_ns)
{
	return attribution_at(&job->used.attribution, t_ns).target_j;
}

// How much an energy changes from interval to interval, of all of it.
static double roughness(const double *j, size_t n)
{
	double sum_j = 0;
	for (size_t k = 2; k < n; k++)
		sum_j += fabs(j[k] - 2 * j[k - 1] + j[k - 2]);
	return sum_j / fmax(j[n - 1] - j[0], 1e-9);
}

static double bend(const double *sums, size_t k)
{
	return sums[k] - 2 * sums[k - 1] + sums[k - 2];
}

// What all programs used, but for what it changed as the others computed more or less than they did on average.
static void take_off_others(const struct fold_updates *u, double *used_j, const double *others_s)
{
	double products = 0, squares = 0, n = (double)u->n;
	for (size_t k = 2; k < u->n; k++) {
		products += bend(used_j, k) * bend(others_s, k);
		squares += bend(others_s, k) * bend(others_s, k);
	}
	double core_w = squares > 0 ? fmax(products / squares, 0) : 0;
	for (size_t k = 0; k < u->n && n > 2; k++) {
		double even_s = (others_s[u->n - 1] - others_s[0]) * (u->t_s[k] - u->t_s[0]) /
			(u->t_s[u->n - 1] - u->t_s[0]);
		used_j[k] -= core_w * (others_s[k] - others_s[0] - even_s);
	}
}

/* CPU time comes in ticks of 10 ms: of one interval the target's share is known to some percent, which would drown what
 * mixtures of blocks tell. A meter is a thousand times as exact, but it sees other programs come and go. So the equations
 * explain whichever is the calmer: the target's energy, or what all programs used, by the target's share in the whole. */
static void choose_energy(struct fold_updates *u, double *used_j, const double *others_s)
{
	size_t n = u->n;
	memcpy(u->j, u->target_j, n * sizeof(double));
	take_off_others(u, used_j, others_s);
	if (n < 3 || roughness(used_j, n) >= roughness(u->target_j, n))
		return;
	u->even_share = (u->target_j[n - 1] - u->target_j[0]) / (used_j[n - 1] - used_j[0]);
	for (size_t k = 0; k < n; k++)
		u->j[k] = u->even_share * used_j[k];
}

struct others_walk { // CPU time of other programs up to instants in ascending order
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

// The updates in a segment; the points where the curve is bent at its ends are none.
int fold_list_updates(const struct fold_job *job, size_t index, struct fold_updates *u)
{
	const struct curve *curve = &job->metering->curve;
	const struct curve_segment *segment = &curve->segments[index];
	size_t n = segment->points.end - segment->points.begin;
	*u = (struct fold_updates){.start_ns = segment->start_ns,
		.length_s = (double)(segment->end_ns - segment->start_ns) / 1e9,
		.t_s = arena_alloc(job->arena, n, sizeof(double)),
		.within_s = arena_alloc(job->arena, n, sizeof(double)),
		.target_j = arena_alloc(job->arena, n, sizeof(double)),
		.j = arena_alloc(job->arena, n, sizeof(double))};
	double *used_j = arena_alloc(job->arena, n, sizeof(double));
	double *others_s = arena_alloc(job->arena, n, sizeof(double));
	struct others_walk others = {.windows = job->metering->attribution.windows};
	if (u->t_s == NULL || u->within_s == NULL || u->target_j == NULL || u->j == NULL || used_j == NULL ||
		others_s == NULL)
		return -ENOMEM;
	double before_j = fold_target_j(job, segment->start_ns);
	double used_before_j = attribution_used_j(&job->used, segment->start_ns);
	for (size_t k = segment->points.begin; k < segment->points.end; k++) {
		if (curve->t_ns[k] <= segment->start_ns || curve->t_ns[k] >= segment->end_ns)
			continue;
		u->t_s[u->n] = (double)(curve->t_ns[k] - segment->start_ns) / 1e9;
		u->within_s[u->n] = curve->within_s[k];
		used_j[u->n] = attribution_used_j(&job->used, curve->t_ns[k]) - used_before_j;
		others_s[u->n] = job->cores != NULL ? others_until_s(&others, curve->t_ns[k]) : 0;
		u->target_j[u->n++] = fold_target_j(job, curve->t_ns[k]) - before_j;
	}
	choose_energy(u, used_j, others_s);
	return 0;
}
