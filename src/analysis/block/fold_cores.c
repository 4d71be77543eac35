/* On how many cores the target computed in each slot. A window tells its CPU time, and over many windows the mixtures of slots tell them
 * apart, as energies of intervals do powers: a block that waits takes no part of what is used beside others meanwhile, however much of
 * a window it fills. Least squares; before data each slot has the mean, and any number up to all that the target had at once. */
#include "analysis/block/fold_build.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

enum { ROUNDS = 3, ROWS_MAX = 4000 };
static const double prior_least = 0.05; // of a core
/* Ticks of 10 ms at both ends of a window; what one window has too much the next one has too little, which is twice as wrong as chance
 * where mixtures alternate from window to window. */
static const double ticks_s2 = 2 * 0.01 * 0.01 / 6;

struct equations { // a row a window: time of each slot, and the target's CPU time
	size_t n, n_slots;
	double *time_s, *cpu_s, *length_s;
	double *normal, *right;
	double mean, prior_variance, noise_s2;
};

static void add_row(struct equations *e, struct fold_sweep *sweep, const struct window *window, int64_t end_ns)
{
	double *row = e->time_s + e->n * e->n_slots;
	int64_t to_ns = window->end_ns < end_ns ? window->end_ns : end_ns;
	memset(row, 0, e->n_slots * sizeof(*row));
	fold_sweep_add(sweep, fmax((double)(window->begin_ns - sweep->start_ns) / 1e9, 0), -1, row);
	fold_sweep_add(sweep, fmax((double)(to_ns - sweep->start_ns) / 1e9, 0), 1, row);
	e->length_s[e->n] = 0;
	for (size_t i = 0; i < e->n_slots; i++)
		e->length_s[e->n] += row[i];
	e->cpu_s[e->n++] = window->target_ns / 1e9;
}

// Of very many windows, every so many.
static void list_rows(struct equations *e, const struct run *run, const struct windows *windows,
	const struct fold_timeline *timeline, const struct fold_slots *slots, double *room)
{
	size_t every = (windows->n + ROWS_MAX - 1) / ROWS_MAX;
	struct fold_sweep sweep = {0};
	uint32_t segment = UINT32_MAX;
	for (size_t i = 0; i < windows->n; i += every) {
		const struct window at = windows_at(windows, i), *window = &at;
		if (isnan(window->target_ns) || window->end_ns <= window->begin_ns)
			continue;
		if (window->segment != segment)
			fold_sweep_init(&sweep, timeline, slots, run->segments[window->segment].start_ns, room);
		segment = window->segment;
		add_row(e, &sweep, window, run->segments[segment].end_ns);
	}
}

static bool find_mean(struct equations *e, double most)
{
	double cpu_s = 0, length_s = 0;
	for (size_t k = 0; k < e->n; k++) {
		cpu_s += e->cpu_s[k];
		length_s += e->length_s[k];
	}
	if (!(cpu_s > 0) || !(length_s > 0))
		return false;
	e->mean = fmin(cpu_s / length_s, most);
	e->prior_variance = fmax(e->mean * (most - e->mean), prior_least * prior_least);
	e->noise_s2 = ticks_s2;
	return true;
}

static bool solve(struct equations *e)
{
	size_t s = e->n_slots;
	memset(e->normal, 0, s * s * sizeof(double));
	memset(e->right, 0, s * sizeof(double));
	for (size_t k = 0; k < e->n; k++) {
		const double *row = e->time_s + k * s;
		double left_s = e->cpu_s[k] - e->mean * e->length_s[k];
		for (size_t i = 0; i < s; i++) {
			double x = row[i] / e->noise_s2;
			for (size_t j = 0; j <= i && x != 0; j++)
				e->normal[i * s + j] += x * row[j];
			e->right[i] += x * left_s;
		}
	}
	for (size_t i = 0; i < s; i++)
		e->normal[i * s + i] += 1 / e->prior_variance;
	if (!cholesky_factor(e->normal, s))
		return false;
	cholesky_solve(e->normal, s, e->right);
	return true;
}

// What the solution leaves of the windows' CPU time; but ticks are always there.
static void measure_noise(struct equations *e)
{
	double squares = 0, n = (double)e->n;
	for (size_t k = 0; k < e->n; k++) {
		double left_s = e->cpu_s[k] - e->mean * e->length_s[k];
		for (size_t i = 0; i < e->n_slots; i++)
			left_s -= e->right[i] * e->time_s[k * e->n_slots + i];
		squares += left_s * left_s;
	}
	e->noise_s2 = fmax(squares / fmax(n - (double)e->n_slots, n / 4), ticks_s2);
}

static int allocate(struct equations *e, size_t n_windows, struct arena *arena)
{
	size_t s = e->n_slots, n = n_windows < ROWS_MAX ? n_windows : ROWS_MAX;
	e->time_s = arena_alloc(arena, n * s, sizeof(double));
	e->cpu_s = arena_alloc(arena, n, sizeof(double));
	e->length_s = arena_alloc(arena, n, sizeof(double));
	e->normal = arena_alloc(arena, s * s, sizeof(double));
	e->right = arena_alloc(arena, s, sizeof(double));
	bool all = e->time_s != NULL && e->cpu_s != NULL && e->length_s != NULL && e->normal != NULL &&
		e->right != NULL;
	return all ? 0 : -ENOMEM;
}

static double beyond(double cores, double most)
{
	return cores < 0 ? cores : fmax(cores - most, 0);
}

/* No slot has less than no core, nor more than there were: where the equations say so, chance has given another slot what it took from
 * this one. The furthest first. */
static void hold_within(const struct equations *e, double most, double *variance, double *cores)
{
	size_t s = e->n_slots;
	for (size_t round = 0; round < s; round++) {
		size_t worst = 0;
		for (size_t i = 1; i < s; i++)
			if (fabs(beyond(cores[i], most)) > fabs(beyond(cores[worst], most)))
				worst = i;
		double off = beyond(cores[worst], most), own = variance[worst * s + worst];
		if (!(fabs(off) > 1e-6) || !(own > 1e-12))
			return;
		for (size_t i = 0; i < s; i++)
			e->right[i] = variance[i * s + worst] / own;
		for (size_t i = 0; i < s; i++) {
			cores[i] -= e->right[i] * off;
			for (size_t k = 0; k < s; k++)
				variance[i * s + k] -= e->right[i] * e->right[k] * own;
		}
	}
}

// Errors stay those of the equations alone: bounds say nothing of how wrong the slots within them are.
static void tell(const struct equations *e, double most, struct fold_cores *cores)
{
	size_t s = e->n_slots;
	for (size_t i = 0; i < s; i++)
		cores->of[i] = e->mean + e->right[i];
	cholesky_inverse(e->normal, s, cores->variance);
	hold_within(e, most, cores->variance, cores->of);
	for (size_t i = 0; i < s; i++)
		cores->of[i] = fmax(0, fmin(cores->of[i], most));
	cholesky_inverse(e->normal, s, cores->variance);
	for (size_t i = 0; i < s; i++) // whose the power is while hardly anybody computes is a matter of words
		cores->variance[i * s + i] += share_hardly * share_hardly / 3;
	cores->known = true;
}

int fold_cores_find(const struct run *run, const struct windows *windows, const struct fold_timeline *timeline,
	const struct fold_slots *slots, struct arena *arena, struct fold_cores *ret_cores)
{
	struct equations e = {.n_slots = slots->n};
	double *room = arena_alloc(arena, slots->n, sizeof(*room));
	*ret_cores = (struct fold_cores){.of = arena_alloc(arena, slots->n, sizeof(double)),
		.variance = arena_alloc(arena, slots->n * slots->n, sizeof(double))};
	if (room == NULL || ret_cores->of == NULL || ret_cores->variance == NULL || allocate(&e, windows->n, arena) < 0)
		return -ENOMEM;
	list_rows(&e, run, windows, timeline, slots, room);
	bool solved = find_mean(&e, windows->most_cores);
	for (int i = 0; i < ROUNDS && solved; i++) {
		solved = solve(&e);
		measure_noise(&e);
	}
	if (solved)
		tell(&e, windows->most_cores, ret_cores);
	return 0;
}
