/* Number of cores that the target used in each slot, and the other programs at the same time. A window gives the
 * target's CPU time. Over many windows the mixtures of slots separate the slots, as the energies of intervals separate
 * powers: a block that waits gets no energy that other programs use at the time, whatever part of a window it fills.
 * Least squares; the prior of each slot is the mean, with any number up to the largest number of cores that the target
 * used. */
#include "analysis/block/deconvolve_internal.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

enum { ROUNDS = 3, ROWS_MAX = 4000 };
static const double prior_min = 0.05; // cores
/* Variance of ticks of 10 ms at both ends of a window. An excess in one window is missing in the next, which doubles
 * the variance where mixtures alternate from window to window. */
static const double ticks_s2 = 2 * 0.01 * 0.01 / 6;
static const double differenced =
	1.5; // neighbouring differences share an error, which least squares assume to be independent

struct equations { // one row per window: time of each slot, and the target's CPU time
	size_t n, n_slots;
	double *time_s, *cpu_s, *length_s, *others_cpu_s;
	double *normal, *right;
	double mean, prior_variance, noise_s2;
};

static void add_row(struct equations *e, struct deconvolve_sweep *sweep, const struct window *window, int64_t end_ns)
{
	double *row = e->time_s + e->n * e->n_slots;
	int64_t to_ns = window->end_ns < end_ns ? window->end_ns : end_ns;
	memset(row, 0, e->n_slots * sizeof(*row));
	deconvolve_sweep_add(sweep, fmax((double)(window->begin_ns - sweep->start_ns) / 1e9, 0), -1, row);
	deconvolve_sweep_add(sweep, fmax((double)(to_ns - sweep->start_ns) / 1e9, 0), 1, row);
	e->length_s[e->n] = 0;
	for (size_t i = 0; i < e->n_slots; i++)
		e->length_s[e->n] += row[i];
	e->others_cpu_s[e->n] = fmax(window->busy_ns - window->target_ns, 0) / 1e9; // NaN: 0
	e->cpu_s[e->n++] = window->target_ns / 1e9;
}

// Uses every n-th window if there are very many.
static void list_rows(struct equations *e, const struct run *run, const struct windows *windows,
	const struct deconvolve_timeline *timeline, const struct deconvolve_slots *slots, double *buffer)
{
	size_t every = (windows->n + ROWS_MAX - 1) / ROWS_MAX;
	struct deconvolve_sweep sweep = {0};
	uint32_t segment = UINT32_MAX;
	for (size_t i = 0; i < windows->n; i += every) {
		const struct window at = windows_at(windows, i), *window = &at;
		if (isnan(window->target_ns) || window->end_ns <= window->begin_ns)
			continue;
		if (window->segment != segment)
			deconvolve_sweep_init(&sweep, timeline, slots, run->segments[window->segment].start_ns, buffer);
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
	e->prior_variance = fmax(e->mean * (most - e->mean), prior_min * prior_min);
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

// Squared residuals of the windows' CPU time.
static double left_squares(const struct equations *e)
{
	double squares = 0;
	for (size_t k = 0; k < e->n; k++) {
		double left_s = e->cpu_s[k] - e->mean * e->length_s[k];
		for (size_t i = 0; i < e->n_slots; i++)
			left_s -= e->right[i] * e->time_s[k * e->n_slots + i];
		squares += left_s * left_s;
	}
	return squares;
}

static void measure_noise(struct equations *e) // ticks are a lower limit
{
	double n = (double)e->n;
	e->noise_s2 = fmax(left_squares(e) / fmax(n - (double)e->n_slots, n / 4), ticks_s2);
}

static int allocate(struct equations *e, size_t n_windows, struct arena *arena)
{
	size_t s = e->n_slots, n = n_windows < ROWS_MAX ? n_windows : ROWS_MAX;
	e->time_s = arena_alloc(arena, n * s, sizeof(double));
	e->cpu_s = arena_alloc(arena, n, sizeof(double));
	e->length_s = arena_alloc(arena, n, sizeof(double));
	e->others_cpu_s = arena_alloc(arena, n, sizeof(double));
	e->normal = arena_alloc(arena, s * s, sizeof(double));
	e->right = arena_alloc(arena, s, sizeof(double));
	bool all = e->time_s != NULL && e->cpu_s != NULL && e->length_s != NULL && e->others_cpu_s != NULL &&
		e->normal != NULL && e->right != NULL;
	return all ? 0 : -ENOMEM;
}

static double beyond(double cores, double most)
{
	return cores < 0 ? cores : fmax(cores - most, 0);
}

/* Bounds the cores of each slot to 0 … most. Where the solution exceeds a bound, another slot has the opposite error,
 * so the bound is imposed on the whole solution, the largest violation first. */
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

// The errors are those of the equations alone, because bounds do not show the errors of slots within them.
static void report_cores(const struct equations *e, double most, struct deconvolve_cores *cores)
{
	size_t s = e->n_slots;
	for (size_t i = 0; i < s; i++)
		cores->of[i] = e->mean + e->right[i];
	cholesky_inverse(e->normal, s, cores->variance);
	hold_within(e, most, cores->variance, cores->of);
	for (size_t i = 0; i < s; i++)
		cores->of[i] = fmax(0, fmin(cores->of[i], most));
	cholesky_inverse(e->normal, s, cores->variance);
	for (size_t i = 0; i < s; i++) // the owner of the power while hardly any program computes is a matter of definition
		cores->variance[i * s + i] += share_negligible_cores * share_negligible_cores / 3;
	cores->known = true;
}

/* ---- other programs ---- */

/* Replaces each window by its difference from the previous one. Programs that run for seconds cancel; only changes with
 * the slots remain. */
static void take_differences(struct equations *e)
{
	size_t s = e->n_slots;
	for (size_t k = e->n - 1; k > 0; k--) {
		e->cpu_s[k] = e->others_cpu_s[k] - e->others_cpu_s[k - 1];
		for (size_t i = 0; i < s; i++)
			e->time_s[k * s + i] -= e->time_s[(k - 1) * s + i];
	}
	memset(e->time_s, 0, s * sizeof(double));
	e->cpu_s[0] = 0;
}

// Whether the slots explain more of the differences than noise would for that number of unknowns (Schwarz's criterion).
static bool solve_differences(struct equations *e)
{
	double n = (double)e->n;
	memset(e->right, 0, e->n_slots * sizeof(double));
	double before = fmax(left_squares(e), 2 * n * ticks_s2);
	bool solved = true;
	e->noise_s2 = before / n;
	for (int i = 0; i < ROUNDS && solved; i++) {
		solved = solve(e);
		measure_noise(e);
	}
	double after = fmax(left_squares(e), 2 * n * ticks_s2);
	return solved && n * log(before / after) > (double)e->n_slots * log(n);
}

/* Cores of other programs in each slot. Ranks of a job compute together and wait together; the target's share of the
 * machine's power then differs between blocks because of the others as much as because of the target. False: the
 * windows show no difference between slots. slot_s: scratch, zeros. */
static bool find_other_programs(struct equations *e, double *slot_s, double *variance, struct deconvolve_cores *cores)
{
	size_t s = e->n_slots;
	double others_cpu_s = 0, length_s = 0, middle = 0;
	for (size_t k = 0; k < e->n; k++) {
		others_cpu_s += e->others_cpu_s[k];
		length_s += e->length_s[k];
		deconvolve_add(slot_s, 1, e->time_s + k * s, s);
	}
	double mean = others_cpu_s / length_s;
	if (e->n < 4 * s || !(mean > share_negligible_cores))
		return false;
	e->mean = 0;
	e->prior_variance = mean * mean;
	take_differences(e);
	if (!solve_differences(e))
		return false;
	for (size_t i = 0; i < s; i++)
		middle += e->right[i] * slot_s[i] / length_s;
	for (size_t i = 0; i < s; i++)
		cores->other_cores[i] = fmax(1 + (e->right[i] - middle) / mean, 0);
	// Twice as many other cores have the same effect as half of the slot's own cores.
	cholesky_inverse(e->normal, s, variance);
	for (size_t i = 0; i < s; i++)
		slot_s[i] = cores->of[i] / fmax(cores->other_cores[i] * mean, share_negligible_cores);
	for (size_t i = 0; i < s; i++)
		for (size_t k = 0; k < s; k++)
			cores->variance[i * s + k] += differenced * variance[i * s + k] * slot_s[i] * slot_s[k];
	return true;
}

int deconvolve_cores_find(const struct run *run, const struct windows *windows,
	const struct deconvolve_timeline *timeline, const struct deconvolve_slots *slots, struct arena *arena,
	struct deconvolve_cores *ret_cores)
{
	struct equations e = {.n_slots = slots->n};
	double *buffer = arena_alloc(arena, slots->n, sizeof(*buffer));
	double *spare = arena_alloc(arena, slots->n * slots->n, sizeof(*spare));
	*ret_cores = (struct deconvolve_cores){.of = arena_alloc(arena, slots->n, sizeof(double)),
		.other_cores = arena_alloc(arena, slots->n, sizeof(double)),
		.variance = arena_alloc(arena, slots->n * slots->n, sizeof(double))};
	if (buffer == NULL || spare == NULL || ret_cores->of == NULL || ret_cores->other_cores == NULL ||
		ret_cores->variance == NULL || allocate(&e, windows->n, arena) < 0)
		return -ENOMEM;
	list_rows(&e, run, windows, timeline, slots, buffer);
	bool solved = find_mean(&e, windows->max_cores);
	for (int i = 0; i < ROUNDS && solved; i++) {
		solved = solve(&e);
		measure_noise(&e);
	}
	if (!solved)
		return 0;
	report_cores(&e, windows->max_cores, ret_cores);
	memset(buffer, 0, slots->n * sizeof(*buffer));
	bool differ = find_other_programs(&e, buffer, spare, ret_cores);
	ret_cores->other_cores = differ ? ret_cores->other_cores : NULL;
	return 0;
}
