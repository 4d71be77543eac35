#include "cap/tune/bootstrap.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

enum { DRAWS = 400 };

struct bootstrap {
	const struct figures *figures;
	struct figures drawn;            // shares all but the logs, y and s with figures
	double *truth[TUNE_QUANTITIES];  // n_grid: the curves
	double *factor;                  // n × n: L of shape
	double mix[TUNE_QUANTITIES][TUNE_QUANTITIES]; // L of noise
	double *normals[TUNE_QUANTITIES];
	double *off[TUNE_QUANTITIES];    // DRAWS: what was promised, less the truth
	double *chosen;                  // DRAWS
	struct dice dice;
};

static double uniform(struct dice *dice)
{
	return ((double)(dice_roll(dice) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct dice *dice)
{
	double radius = sqrt(-2 * log(uniform(dice)));
	return radius * cos(2 * M_PI * uniform(dice));
}

// The noise itself is known from so many degrees of freedom only: draws scatter like Student's t.
static double noise_scale(struct dice *dice, size_t degrees)
{
	double squares = 0;
	for (size_t i = 0; i < degrees; i++)
		squares += pow(normal(dice), 2);
	return sqrt((double)degrees / squares);
}

static void draw_figures(struct bootstrap *bootstrap)
{
	size_t n = bootstrap->figures->n;
	double scale = noise_scale(&bootstrap->dice, bootstrap->figures->degrees);
	for (size_t i = 0; i < n; i++) {
		double e = normal(&bootstrap->dice), t = normal(&bootstrap->dice);
		bootstrap->normals[TUNE_E][i] = scale * bootstrap->mix[0][0] * e;
		bootstrap->normals[TUNE_T][i] = scale * (bootstrap->mix[1][0] * e + bootstrap->mix[1][1] * t);
	}
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		double *log = bootstrap->drawn.log[q];
		for (size_t i = 0; i < n; i++) {
			log[i] = bootstrap->truth[q][bootstrap->figures->grid_of[i]];
			for (size_t j = 0; j <= i; j++)
				log[i] += bootstrap->factor[i * n + j] * bootstrap->normals[q][j];
		}
		for (size_t i = n; i-- > 0;)
			log[i] -= log[0];
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double *doubles(struct arena *arena, size_t n)
{
	return arena_alloc(arena, n, sizeof(double));
}

static int bootstrap_init(struct bootstrap *bootstrap, struct arena *arena)
{
	const struct figures *figures = bootstrap->figures;
	bool has = true;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		bootstrap->truth[q] = doubles(arena, figures->n_grid);
		bootstrap->normals[q] = doubles(arena, figures->n);
		bootstrap->off[q] = doubles(arena, DRAWS);
		bootstrap->drawn.log[q] = doubles(arena, figures->n);
		has = has && bootstrap->truth[q] != NULL && bootstrap->normals[q] != NULL && bootstrap->off[q] != NULL &&
			bootstrap->drawn.log[q] != NULL;
	}
	bootstrap->drawn.y = doubles(arena, figures->n);
	bootstrap->drawn.s = doubles(arena, figures->n);
	bootstrap->factor = doubles(arena, figures->n * figures->n);
	bootstrap->chosen = doubles(arena, DRAWS);
	if (!has || bootstrap->drawn.y == NULL || bootstrap->drawn.s == NULL || bootstrap->factor == NULL ||
		bootstrap->chosen == NULL)
		return -ENOMEM;
	memcpy(bootstrap->factor, figures->shape, figures->n * figures->n * sizeof(double));
	if (!cholesky_factor(bootstrap->factor, figures->n))
		return -EDOM;
	const double(*noise)[TUNE_QUANTITIES] = figures->noise;
	bootstrap->mix[0][0] = sqrt(noise[TUNE_E][TUNE_E]);
	bootstrap->mix[1][0] = noise[TUNE_E][TUNE_T] / bootstrap->mix[0][0];
	bootstrap->mix[1][1] = sqrt(fmax(noise[TUNE_T][TUNE_T] - pow(bootstrap->mix[1][0], 2), 0));
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		for (size_t g = 0; g < figures->n_grid; g++)
			bootstrap->truth[q][g] = figures_curve(figures, (enum tune_quantity)q, g);
	return 0;
}

// 95 % of the truths lie between: what is promised less the errors' quantiles.
static void fill_interval(struct tune_interval *interval, double value_log, double *off, double percent)
{
	qsort(off, DRAWS, sizeof(*off), compare);
	double a = percent * expm1(value_log - off[DRAWS / 40]), b = percent * expm1(value_log - off[DRAWS - 1 - DRAWS / 40]);
	interval->low = fmin(a, b);
	interval->high = fmax(a, b);
}

int bootstrap_choice(const struct figures *figures, const struct choice *choice, uint64_t seed, struct arena *arena,
	struct tune_result *result)
{
	struct bootstrap bootstrap = {.figures = figures, .drawn = *figures, .dice = dice_make(seed, 2)};
	int r = bootstrap_init(&bootstrap, arena);
	if (r < 0)
		return r == -EDOM ? 0 : r;
	for (size_t d = 0; d < DRAWS; d++) {
		draw_figures(&bootstrap);
		size_t at = choose(&bootstrap.drawn, choice).at;
		bootstrap.chosen[d] = figures->grid[at];
		for (size_t q = 0; q < TUNE_QUANTITIES; q++)
			bootstrap.off[q][d] = figures_curve(&bootstrap.drawn, (enum tune_quantity)q, at) - bootstrap.truth[q][at];
	}
	qsort(bootstrap.chosen, DRAWS, sizeof(double), compare);
	result->chosen_range.low = fmin(bootstrap.chosen[DRAWS / 40], figures->grid[choice->at]);
	result->chosen_range.high = fmax(bootstrap.chosen[DRAWS - 1 - DRAWS / 40], figures->grid[choice->at]);
	if (choice->at == 0)
		return 0;
	fill_interval(&result->saving_percent, figures_curve(figures, TUNE_E, choice->at), bootstrap.off[TUNE_E], -100);
	fill_interval(&result->slowdown, figures_curve(figures, TUNE_T, choice->at), bootstrap.off[TUNE_T], 100);
	return 0;
}
