/* Smooth curves of log E and log T over log limit: a cubic smoothing spline. It is the best estimate if the curve is a
 * line plus an integrated random walk. It is linear in the measured values, so the result is a table of weights. */
#include "cap/tune/internal.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

/* Variances of the curvature over log limit. The slopes of log E and log T of most devices change by 1 to 2 over the
 * range of limits, but a program that starts to wait for its clocks causes a corner. One curve is fitted for each
 * variance, and the curves are averaged by their restricted likelihood. */
static const double bends[] = {0.5, 4, 32, 256};
enum { BENDS = ARRAY_SIZE(bends) };

static const double EXACT = 1e-3; // fraction of the noise: yields a curve through the measured values

enum { LINE = 2 };

struct spline {
	size_t n;
	const double *u;         // log limit, counted from the lowest one, as a fraction of the range
	double *factor;          // n × n: Cholesky factor L of bend·K + noise
	double *solved[LINE];    // n: covariance⁻¹ · (1, u)
	double line[LINE][LINE]; // inverse of (1, u)ᵀ·covariance⁻¹·(1, u)
	double *right;           // n
	double bend;
};

// Covariance of an integrated random walk from 0 between two positions.
static double kernel(double a, double b)
{
	double less = fmin(a, b), more = fmax(a, b);
	return less * less * (3 * more - less) / 6;
}

static double base(size_t k, double u)
{
	return k == 0 ? 1 : u;
}

static bool prepare(struct spline *spline, const double *shape, double noise)
{
	size_t n = spline->n;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			spline->factor[i * n + j] = spline->bend * kernel(spline->u[i], spline->u[j]) +
				noise * shape[i * n + j];
	if (!cholesky_factor(spline->factor, n))
		return false;
	double gram[LINE][LINE];
	for (size_t k = 0; k < LINE; k++) {
		for (size_t i = 0; i < n; i++)
			spline->solved[k][i] = base(k, spline->u[i]);
		cholesky_solve(spline->factor, n, spline->solved[k]);
		for (size_t l = 0; l < LINE; l++) {
			gram[k][l] = 0;
			for (size_t i = 0; i < n; i++)
				gram[k][l] += spline->solved[k][i] * base(l, spline->u[i]);
		}
	}
	double area = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
	if (!(area > 0))
		return false;
	spline->line[0][0] = gram[1][1] / area;
	spline->line[1][1] = gram[0][0] / area;
	spline->line[0][1] = spline->line[1][0] = -gram[0][1] / area;
	return true;
}

// Adds the weights that give the curve at u: those of the line, and those of the residuals from the line.
static void add_weights_at(struct spline *spline, double u, double share, double *weights)
{
	size_t n = spline->n;
	double *near = spline->right;
	for (size_t i = 0; i < n; i++)
		near[i] = spline->bend * kernel(spline->u[i], u);
	cholesky_solve(spline->factor, n, near);
	double slack[LINE];
	for (size_t k = 0; k < LINE; k++) {
		slack[k] = base(k, u);
		for (size_t i = 0; i < n; i++)
			slack[k] -= near[i] * base(k, spline->u[i]);
	}
	for (size_t i = 0; i < n; i++) {
		double weight = near[i];
		for (size_t k = 0; k < LINE; k++)
			for (size_t l = 0; l < LINE; l++)
				weight += slack[k] * spline->line[k][l] * spline->solved[l][i];
		weights[i] += share * weight;
	}
}

// If no curve can be fitted (limits too close together for doubles), each limit takes the value of the next higher
// measured limit.
static void weights_of_steps(const struct figures *figures, double *weights)
{
	size_t above = 0;
	for (size_t g = 0; g < figures->n_grid; g++) {
		while (above + 1 < figures->n && figures->grid_of[above + 1] <= g)
			above++;
		weights[g * figures->n + above] = 1;
	}
}

// Log likelihood up to a constant; call after prepare().
static double likelihood(struct spline *spline, const double *y)
{
	size_t n = spline->n;
	double *solved = spline->right, log_determinant = 0, along[LINE];
	for (size_t i = 0; i < n; i++)
		log_determinant += 2 * log(spline->factor[i * n + i]);
	memcpy(solved, y, n * sizeof(*y));
	cholesky_solve(spline->factor, n, solved);
	double squares = dot_product(y, solved, n);
	for (size_t k = 0; k < LINE; k++)
		along[k] = dot_product(spline->solved[k], y, n);
	for (size_t k = 0; k < LINE; k++)
		for (size_t l = 0; l < LINE; l++)
			squares -= along[k] * spline->line[k][l] * along[l];
	double area = spline->line[0][0] * spline->line[1][1] - spline->line[0][1] * spline->line[1][0];
	return -(log_determinant - log(area) + squares) / 2;
}

// Computes the weight of each curvature variance; false: no curve can be fitted.
static bool weight_bends(struct spline *spline, const struct figures *figures, enum tune_quantity q, double *ret_shares)
{
	double most = -INFINITY, sum = 0;
	for (size_t b = 0; b < BENDS; b++) {
		spline->bend = bends[b];
		if (!prepare(spline, figures->shape, figures->noise[q][q]))
			return false;
		ret_shares[b] = likelihood(spline, figures->log[q]);
		most = fmax(most, ret_shares[b]);
	}
	for (size_t b = 0; b < BENDS; b++)
		sum += ret_shares[b] = exp(ret_shares[b] - most);
	for (size_t b = 0; b < BENDS; b++)
		ret_shares[b] /= sum;
	return isfinite(sum);
}

static void fill_weights(struct spline *spline, const struct figures *figures, const double *shares, double noise,
	double *weights)
{
	size_t n = figures->n;
	for (size_t b = 0; b < BENDS; b++) {
		spline->bend = bends[b];
		if (!prepare(spline, figures->shape, noise))
			continue;
		for (size_t g = 0; g < figures->n_grid; g++)
			add_weights_at(spline, log(figures->grid[g] / figures->limit[n - 1]), shares[b],
				weights + g * n);
	}
}

// Covariance of the true values about the curve at the measured limits: weights × noise.
static void fill_uncertainty(struct figures *figures, enum tune_quantity q)
{
	size_t n = figures->n;
	double noise = figures->noise[q][q];
	for (size_t i = 0; i < n; i++) {
		const double *weights = figures->weights[q] + figures->grid_of[i] * n;
		for (size_t j = 0; j < n; j++)
			figures->uncertainty[q][i * n + j] = noise * dot_product(weights, figures->shape + j * n, n);
	}
}

// Makes the curve relative to its own value at the reference, so that the difference there is 0.
static void relate_to_reference(const struct figures *figures, double *weights)
{
	for (size_t g = figures->n_grid; g-- > 0;)
		for (size_t i = 0; i < figures->n; i++)
			weights[g * figures->n + i] -= weights[i];
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
	bool has = u != NULL && spline.factor != NULL && spline.right != NULL && spline.solved[0] != NULL &&
		spline.solved[1] != NULL;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		figures->weights[q] = arena_alloc(arena, figures->n_grid * n, sizeof(double));
		figures->exact[q] = arena_alloc(arena, figures->n_grid * n, sizeof(double));
		figures->uncertainty[q] = arena_alloc(arena, n * n, sizeof(double));
		has = has && figures->weights[q] != NULL && figures->exact[q] != NULL &&
			figures->uncertainty[q] != NULL;
	}
	if (!has)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		u[i] = log(figures->limit[i] / figures->limit[n - 1]);
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		double noise = figures->noise[q][q], shares[BENDS];
		if (weight_bends(&spline, figures, (enum tune_quantity)q, shares)) {
			fill_weights(&spline, figures, shares, noise, figures->weights[q]);
			fill_weights(&spline, figures, shares, EXACT * noise, figures->exact[q]);
		} else {
			weights_of_steps(figures, figures->weights[q]);
			weights_of_steps(figures, figures->exact[q]);
		}
		fill_uncertainty(figures, (enum tune_quantity)q);
		relate_to_reference(figures, figures->weights[q]);
		relate_to_reference(figures, figures->exact[q]);
	}
	return 0;
}
