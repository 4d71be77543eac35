#include "cap/tune/internal.h"

#include "base/util.h"

#include <errno.h>

/* Models must be accurate near the optimum: for a limit that is 10 % worse than the best one, an accuracy of 2 % is
 * enough. */
static const double CERTAINTY_LOW = 0.2;

// Prior for the noise (standard deviation of a window's logs), counted as one degree of freedom: few windows may agree
// by chance, and one window per limit shows nothing about the noise.
static const double SUPPOSED_NOISE = 0.01;

enum { GRID_MAX = 1024 };

static size_t count_grid(double low, double high, double *ret_step)
{
	*ret_step = fmax(ceil((high - low) / GRID_MAX), 1);
	return high - low < 1e15 ? (size_t)((high - low) / *ret_step) + 1 : 0;
}

// Merges whole-number limits with the measured ones, descending, without duplicates.
static int make_grid(struct figures *figures, struct arena *arena)
{
	double high = figures->limit[0], low = figures->limit[figures->n - 1], step;
	size_t whole = count_grid(low, high, &step);
	figures->grid = arena_alloc(arena, whole + figures->n, sizeof(*figures->grid));
	figures->grid_of = arena_alloc(arena, figures->n, sizeof(*figures->grid_of));
	if (figures->grid == NULL || figures->grid_of == NULL)
		return -ENOMEM;
	double next = floor(high);
	size_t n = 0;
	for (size_t i = 0; i < figures->n; i++) {
		for (; next > figures->limit[i] && n < whole + i; next -= step)
			figures->grid[n++] = next;
		if (next == figures->limit[i])
			next -= step;
		figures->grid_of[i] = n;
		figures->grid[n++] = figures->limit[i];
	}
	figures->n_grid = n;
	return 0;
}

static bool alloc_figures(struct figures *figures, struct arena *arena)
{
	double **rows[] = {&figures->limit, &figures->x, &figures->log[TUNE_E], &figures->log[TUNE_T], &figures->y,
		&figures->s};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if ((*rows[i] = arena_alloc(arena, figures->n, sizeof(double))) == NULL)
			return false;
	figures->shape = arena_alloc(arena, figures->n * figures->n, sizeof(double));
	return figures->shape != NULL;
}

static void fill_objective(struct figures *figures)
{
	double least = INFINITY, k = figures->time_exponent;
	const double(*noise)[TUNE_QUANTITIES] = figures->noise;
	figures->noise_of_objective = noise[TUNE_E][TUNE_E] + 2 * k * noise[TUNE_E][TUNE_T] +
		k * k * noise[TUNE_T][TUNE_T];
	for (size_t i = 0; i < figures->n; i++) {
		figures->y[i] = figures->log[TUNE_E][i] + k * figures->log[TUNE_T][i];
		least = fmin(least, figures->y[i]);
	}
	for (size_t i = 0; i < figures->n; i++)
		figures->s[i] = sqrt(figures->noise_of_objective * figures->shape[i * figures->n + i] +
			pow(CERTAINTY_LOW * (figures->y[i] - least), 2));
}

static void fill_noise(struct figures *figures, const struct estimate *estimate)
{
	double degrees = (double)estimate->degrees;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		for (size_t p = 0; p < TUNE_QUANTITIES; p++) {
			double seen = degrees > 0 ? degrees * estimate->noise[q][p] : 0;
			figures->noise[q][p] = (seen + (q == p ? pow(SUPPOSED_NOISE, 2) : 0)) / (degrees + 1);
		}
}

int figures_make(const struct estimate *estimate, const double *limits, enum tune_goal goal, double slowdown_percent,
	struct arena *arena, struct figures *ret_figures)
{
	struct figures figures = {.goal = goal,
		.time_exponent = tune_time_exponent(goal),
		.degrees = estimate->degrees,
		.bound = goal == TUNE_SLOWDOWN ? log1p(slowdown_percent / 100) : INFINITY};
	for (size_t i = 0; i < estimate->n; i++)
		figures.n += !isnan(estimate->log[TUNE_E][i]);
	size_t *kept = arena_alloc(arena, estimate->n, sizeof(*kept)), n = 0;
	if (kept == NULL || !alloc_figures(&figures, arena))
		return -ENOMEM;
	for (size_t i = 0; i < estimate->n; i++)
		if (!isnan(estimate->log[TUNE_E][i]))
			kept[n++] = i;
	for (size_t i = 0; i < n; i++) {
		figures.limit[i] = limits[kept[i]];
		figures.x[i] = limits[kept[i]] / limits[0];
		for (size_t q = 0; q < TUNE_QUANTITIES; q++)
			figures.log[q][i] = estimate->log[q][kept[i]] - estimate->log[q][0];
		for (size_t j = 0; j < n; j++)
			figures.shape[i * n + j] = estimate->shape[kept[i] * estimate->n + kept[j]];
	}
	fill_noise(&figures, estimate);
	fill_objective(&figures);
	int r = make_grid(&figures, arena);
	if (r == 0)
		r = curves_make(&figures, arena);
	if (r == 0)
		*ret_figures = figures;
	return r;
}

struct model_points figures_points(const struct figures *figures)
{
	return (struct model_points){.n = figures->n,
		.x = figures->x,
		.y = figures->y,
		.s = figures->s,
		.x_low = figures->x[figures->n - 1]};
}

double figures_curve(const struct figures *figures, enum tune_quantity quantity, size_t at)
{
	const double *weights = figures->weights[quantity] + at * figures->n;
	double sum = 0;
	for (size_t i = 0; i < figures->n; i++)
		sum += weights[i] * figures->log[quantity][i];
	return sum;
}
