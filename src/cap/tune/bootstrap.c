#include "cap/tune/internal.h"

#include "base/cholesky.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>

enum {
	DRAWS = 400,
	CUT = DRAWS / 40, // 2.5 % at each end
	RANKS = 128       // number of grid limits to search for an optimum; sets the resolution of the range
};

// Half-way between two measured limits, a smooth curve can miss discontinuities: clock steps, or a limit that starts to
// take effect.
static const double BETWEEN = 0.005;

struct bootstrap {
	const struct figures *figures;
	size_t chosen;
	double between;                      // standard deviation at the chosen limit
	double *curve[TUNE_QUANTITIES];      // n: values at the measured limits
	double *true_curve[TUNE_QUANTITIES]; // n: values of this draw
	double *uncertainty
		[TUNE_QUANTITIES]; // n × n: Cholesky factor L of the covariance of the true values about the curve
	double *normals[TUNE_QUANTITIES];
	double *change[TUNE_QUANTITIES]; // DRAWS: log of the change at the chosen limit
	double *best;                    // DRAWS: optimal limits
	struct rng rng;
};

static double uniform(struct rng *rng)
{
	return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct rng *rng)
{
	double radius = sqrt(-2 * log(uniform(rng)));
	return radius * cos(2 * M_PI * uniform(rng));
}

// The noise is itself estimated, with a limited number of degrees of freedom, so draws follow Student's t.
static double noise_scale(struct rng *rng, size_t degrees)
{
	double squares = 0;
	for (size_t i = 0; i < degrees; i++)
		squares += pow(normal(rng), 2);
	return sqrt((double)degrees / squares);
}

static void draw_true_curve(struct bootstrap *bootstrap)
{
	const struct figures *figures = bootstrap->figures;
	double scale = noise_scale(&bootstrap->rng, figures->degrees + 1);
	double together = figures->noise[TUNE_E][TUNE_T] /
		sqrt(figures->noise[TUNE_E][TUNE_E] * figures->noise[TUNE_T][TUNE_T]);
	for (size_t i = 0; i < figures->n; i++) {
		double e = scale * normal(&bootstrap->rng), t = scale * normal(&bootstrap->rng);
		bootstrap->normals[TUNE_E][i] = e;
		bootstrap->normals[TUNE_T][i] = together * e + sqrt(fmax(1 - together * together, 0)) * t;
	}
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		for (size_t i = 0; i < figures->n; i++)
			bootstrap->true_curve[q][i] = bootstrap->curve[q][i] +
				dot_product(bootstrap->uncertainty[q] + i * figures->n, bootstrap->normals[q], i + 1);
}

static double true_curve_at(const struct bootstrap *bootstrap, enum tune_quantity q, size_t g)
{
	size_t n = bootstrap->figures->n;
	return dot_product(bootstrap->figures->exact[q] + g * n, bootstrap->true_curve[q], n);
}

static double best_of_true_curve(const struct bootstrap *bootstrap)
{
	const struct figures *figures = bootstrap->figures;
	double least = 0;
	size_t best = 0, step = figures->n_grid / RANKS + 1, last = figures->n_grid - 1;
	for (size_t index = step; index < last + step; index += step) {
		size_t g = index < last ? index : last;
		double t = figures->time_exponent > 0 || isfinite(figures->bound) ? true_curve_at(bootstrap, TUNE_T, g)
										  : 0;
		if (t > figures->bound)
			break;
		double value = true_curve_at(bootstrap, TUNE_E, g) + figures->time_exponent * t;
		if (value < least) {
			least = value;
			best = g;
		}
	}
	return figures->grid[best];
}

static int bootstrap_init(struct bootstrap *bootstrap, struct arena *arena)
{
	size_t n = bootstrap->figures->n;
	bootstrap->best = arena_alloc(arena, DRAWS, sizeof(double));
	bool has = bootstrap->best != NULL;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		bootstrap->curve[q] = arena_alloc(arena, n, sizeof(double));
		bootstrap->true_curve[q] = arena_alloc(arena, n, sizeof(double));
		bootstrap->normals[q] = arena_alloc(arena, n, sizeof(double));
		bootstrap->uncertainty[q] = arena_alloc(arena, n * n, sizeof(double));
		bootstrap->change[q] = arena_alloc(arena, DRAWS, sizeof(double));
		has = has && bootstrap->curve[q] != NULL && bootstrap->true_curve[q] != NULL &&
			bootstrap->normals[q] != NULL && bootstrap->uncertainty[q] != NULL &&
			bootstrap->change[q] != NULL;
	}
	return has ? 0 : -ENOMEM;
}

// Fills in the mean of the draws. False: the covariance is singular, because there was almost no noise.
static bool fill_curves(struct bootstrap *bootstrap)
{
	const struct figures *figures = bootstrap->figures;
	size_t n = figures->n;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		for (size_t i = 0; i < n; i++)
			bootstrap->curve[q][i] = figures_curve(figures, (enum tune_quantity)q, figures->grid_of[i]);
		memcpy(bootstrap->uncertainty[q], figures->uncertainty[q], n * n * sizeof(double));
		for (size_t i = 0; i < n; i++) // keeps the matrix positive definite despite rounding
			bootstrap->uncertainty[q][i * n + i] *= 1 + 1e-9;
		if (!cholesky_factor(bootstrap->uncertainty[q], n))
			return false;
	}
	return true;
}

static double between_at(const struct figures *figures, size_t g)
{
	size_t below = 1;
	while (below + 1 < figures->n && figures->grid_of[below] < g)
		below++;
	double high = log(figures->limit[below - 1]), low = log(figures->limit[below]);
	double part = (high - log(figures->grid[g])) / (high - low);
	return BETWEEN * 4 * fmax(part * (1 - part), 0);
}

static void fill_interval(struct tune_interval *interval, double *changes, double percent)
{
	qsort(changes, DRAWS, sizeof(*changes), compare_doubles);
	double a = percent * expm1(changes[CUT]), b = percent * expm1(changes[DRAWS - 1 - CUT]);
	interval->low = fmin(a, b);
	interval->high = fmax(a, b);
}

int bootstrap_choice(const struct figures *figures, size_t chosen, uint64_t seed, struct arena *arena,
	struct tune_result *result)
{
	struct bootstrap bootstrap = {.figures = figures,
		.chosen = chosen,
		.between = between_at(figures, chosen),
		.rng = rng_init(seed, 2)};
	int r = bootstrap_init(&bootstrap, arena);
	if (r < 0 || !fill_curves(&bootstrap))
		return r;
	for (size_t d = 0; d < DRAWS; d++) {
		draw_true_curve(&bootstrap);
		bootstrap.best[d] = best_of_true_curve(&bootstrap);
		for (size_t q = 0; q < TUNE_QUANTITIES; q++)
			bootstrap.change[q][d] = true_curve_at(&bootstrap, (enum tune_quantity)q, chosen) +
				bootstrap.between * normal(&bootstrap.rng);
	}
	qsort(bootstrap.best, DRAWS, sizeof(double), compare_doubles);
	result->chosen_range.low = fmin(bootstrap.best[CUT], figures->grid[chosen]);
	result->chosen_range.high = fmax(bootstrap.best[DRAWS - 1 - CUT], figures->grid[chosen]);
	if (chosen == 0)
		return 0;
	fill_interval(&result->saving_percent, bootstrap.change[TUNE_E], -100);
	fill_interval(&result->slowdown, bootstrap.change[TUNE_T], 100);
	return 0;
}
