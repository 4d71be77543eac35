/* Smooth curves of log E and log T over log limit: a cubic smoothing spline, which is the best guess when the curve is a line
 * plus an integrated random walk. How far it may bend is chosen from a list by restricted likelihood. It is linear in the
 * figures, so it comes as a table of weights. */
#include "cap/tune/figures.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

// Variance of the bend, over log limit: from a line to free interpolation. E and T of real devices bend by 1 to 10.
static const double bends[] = {1e-4, 1e-2, 1e-1, 1, 10, 100};

enum { LINE = 2 };

struct spline {
	size_t n;
	const double *u;        // log limit, from the least one, in their range
	double *factor;         // n × n: L of bend·K + noise
	double *solved[LINE];   // n: covariance⁻¹ · (1, u)
	double line[LINE][LINE]; // inverse of (1, u)ᵀ·covariance⁻¹·(1, u)
	double *right;          // n
};

// Of an integrated random walk from 0: the covariance of where it is at two places.
static double kernel(double a, double b)
{
	double less = fmin(a, b), more = fmax(a, b);
	return less * less * (3 * more - less) / 6;
}

static double base(size_t k, double u)
{
	return k == 0 ? 1 : u;
}

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

// -2·log likelihood of y (restricted); NaN: can't be factored.
static double prepare(struct spline *spline, const double *shape, double noise, double bend, const double *y)
{
	size_t n = spline->n;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			spline->factor[i * n + j] = bend * kernel(spline->u[i], spline->u[j]) + noise * shape[i * n + j];
	if (!cholesky_factor(spline->factor, n))
		return (double)NAN;
	double gram[LINE][LINE], with_y[LINE], determinant = 0;
	for (size_t k = 0; k < LINE; k++) {
		for (size_t i = 0; i < n; i++)
			spline->solved[k][i] = base(k, spline->u[i]);
		cholesky_solve(spline->factor, n, spline->solved[k]);
		with_y[k] = dot(spline->solved[k], y, n);
		for (size_t l = 0; l < LINE; l++) {
			gram[k][l] = 0;
			for (size_t i = 0; i < n; i++)
				gram[k][l] += spline->solved[k][i] * base(l, spline->u[i]);
		}
	}
	double area = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
	if (!(area > 0))
		return (double)NAN;
	spline->line[0][0] = gram[1][1] / area;
	spline->line[1][1] = gram[0][0] / area;
	spline->line[0][1] = spline->line[1][0] = -gram[0][1] / area;
	for (size_t i = 0; i < n; i++)
		determinant += 2 * log(spline->factor[i * n + i]);
	memcpy(spline->right, y, n * sizeof(*y));
	cholesky_solve(spline->factor, n, spline->right);
	double squares = dot(spline->right, y, n);
	for (size_t k = 0; k < LINE; k++)
		for (size_t l = 0; l < LINE; l++)
			squares -= with_y[k] * spline->line[k][l] * with_y[l];
	return determinant + log(area) + squares;
}

// The weights that give the curve at u: of the line, and of what is left of the figures beside it.
static void weights_at(struct spline *spline, double bend, double u, double *ret_weights)
{
	size_t n = spline->n;
	double *near = spline->right;
	for (size_t i = 0; i < n; i++)
		near[i] = bend * kernel(spline->u[i], u);
	cholesky_solve(spline->factor, n, near);
	double slack[LINE];
	for (size_t k = 0; k < LINE; k++) {
		slack[k] = base(k, u);
		for (size_t i = 0; i < n; i++)
			slack[k] -= near[i] * base(k, spline->u[i]);
	}
	for (size_t i = 0; i < n; i++) {
		ret_weights[i] = near[i];
		for (size_t k = 0; k < LINE; k++)
			for (size_t l = 0; l < LINE; l++)
				ret_weights[i] += slack[k] * spline->line[k][l] * spline->solved[l][i];
	}
}

static double choose_bend(struct spline *spline, const struct figures *figures, enum tune_quantity quantity)
{
	double least = INFINITY, chosen = bends[0];
	for (size_t b = 0; b < ARRAY_SIZE(bends); b++) {
		double loss = prepare(spline, figures->shape, figures->noise[quantity][quantity], bends[b],
			figures->log[quantity]);
		if (!(loss < least))
			continue;
		least = loss;
		chosen = bends[b];
	}
	return chosen;
}

static void fill_weights(struct spline *spline, struct figures *figures, enum tune_quantity quantity)
{
	size_t n = figures->n;
	double bend = choose_bend(spline, figures, quantity), least = figures->limit[n - 1];
	double loss = prepare(spline, figures->shape, figures->noise[quantity][quantity], bend, figures->log[quantity]);
	for (size_t g = 0; g < figures->n_grid && !isnan(loss); g++)
		weights_at(spline, bend, log(figures->grid[g] / least), figures->weights[quantity] + g * n);
	// The curve goes by the reference's own level, so that the difference to it is 0 there.
	for (size_t g = figures->n_grid; g-- > 0;)
		for (size_t i = 0; i < n; i++)
			figures->weights[quantity][g * n + i] -= figures->weights[quantity][i];
}

int curves_make(struct figures *figures, struct arena *arena)
{
	size_t n = figures->n;
	double *u = arena_alloc(arena, n, sizeof(*u));
	struct spline spline = {.n = n, .u = u};
	spline.factor = arena_alloc(arena, n * n, sizeof(double));
	spline.right = arena_alloc(arena, n, sizeof(double));
	for (size_t k = 0; k < LINE; k++)
		spline.solved[k] = arena_alloc(arena, n, sizeof(double));
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		figures->weights[q] = arena_alloc(arena, figures->n_grid * n, sizeof(double));
	if (u == NULL || spline.factor == NULL || spline.right == NULL || spline.solved[0] == NULL ||
		spline.solved[1] == NULL || figures->weights[TUNE_E] == NULL || figures->weights[TUNE_T] == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		u[i] = log(figures->limit[i] / figures->limit[n - 1]);
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		fill_weights(&spline, figures, (enum tune_quantity)q);
	return 0;
}
