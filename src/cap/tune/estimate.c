/* Model: log(value of a window) = log(value of its limit) + drift(at) + noise. The drift is a random walk in time. Its
 * strength relative to the noise is estimated from the windows: the fit is done for each strength of a list, and the
 * results are averaged by their restricted likelihood. Strength 0 averages the windows of a limit. A strong walk
 * amounts to subtracting the line between two windows of the reference from the windows between them. */
#include "cap/tune/internal.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <errno.h>

// Variance of the walk per window, in units of the noise variance of a window.
static const double strengths[] = {0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 10};
enum { STRENGTHS = ARRAY_SIZE(strengths) };

static const double MIN_NOISE = 1e-12; // variance: resolution of doubles and of counters in µJ, even without scatter

struct fit {
	size_t m, n; // number of windows, and of limits with at least one window
	const struct tune_window *windows;
	const size_t *column;        // column of each limit among the n
	double *y[TUNE_QUANTITIES];  // m: logs minus their mean
	double *steps;               // m: time since the previous window, in units of the mean
	double *pivot, *below;       // m: LDLᵀ factors of the tridiagonal matrix of one strength
	double *solved;              // m
	double *normal, *inverse;    // n × n
	double *at[TUNE_QUANTITIES]; // n: solution
	double noise[TUNE_QUANTITIES][TUNE_QUANTITIES], likelihood; // likelihood: its log
};

/* The covariance W of the walk has a tridiagonal inverse, so (I + r·W)⁻¹·v = v − (I + W⁻¹/r)⁻¹·v takes one forward and
 * one backward pass. Factors the matrix; returns log|I + r·W|. */
static double factor_walk(struct fit *fit, double strength)
{
	if (strength <= 0)
		return 0;
	double log_determinant = 0;
	for (size_t j = 0; j < fit->m; j++) {
		double diagonal = 1 + 1 / (strength * fit->steps[j]);
		if (j + 1 < fit->m)
			diagonal += 1 / (strength * fit->steps[j + 1]);
		fit->below[j] = 0;
		if (j > 0) {
			double beside = -1 / (strength * fit->steps[j]);
			fit->below[j] = beside / fit->pivot[j - 1];
			diagonal -= beside * fit->below[j];
		}
		fit->pivot[j] = diagonal;
		log_determinant += log(diagonal) + log(strength * fit->steps[j]);
	}
	return log_determinant;
}

// Stores (I + r·W)⁻¹·v in fit->solved.
static void solve_walk(struct fit *fit, double strength, const double *v)
{
	double *x = fit->solved;
	memcpy(x, v, fit->m * sizeof(*x));
	if (strength <= 0)
		return;
	for (size_t j = 1; j < fit->m; j++)
		x[j] -= fit->below[j] * x[j - 1];
	for (size_t j = fit->m; j-- > 0;) {
		x[j] /= fit->pivot[j];
		if (j + 1 < fit->m)
			x[j] -= fit->below[j + 1] * x[j + 1];
	}
	for (size_t j = 0; j < fit->m; j++)
		x[j] = v[j] - x[j];
}

static size_t column_of(const struct fit *fit, size_t window)
{
	return fit->column[fit->windows[window].limit];
}

static void sum_by_limit(const struct fit *fit, const double *v, double *ret_sums)
{
	memset(ret_sums, 0, fit->n * sizeof(*ret_sums));
	for (size_t j = 0; j < fit->m; j++)
		ret_sums[column_of(fit, j)] += v[j];
}

// Generalised least squares for one strength of the walk. False: the fit failed (never with valid windows).
static bool fit_strength(struct fit *fit, double strength, double *indicator)
{
	double log_determinant = factor_walk(fit, strength);
	for (size_t i = 0; i < fit->n; i++) {
		for (size_t j = 0; j < fit->m; j++)
			indicator[j] = column_of(fit, j) == i;
		solve_walk(fit, strength, indicator);
		sum_by_limit(fit, fit->solved, fit->normal + i * fit->n);
	}
	if (!cholesky_factor(fit->normal, fit->n))
		return false;
	double log_normal = 0, squares[TUNE_QUANTITIES][TUNE_QUANTITIES];
	for (size_t i = 0; i < fit->n; i++)
		log_normal += 2 * log(fit->normal[i * fit->n + i]);
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		double *right = indicator; // no longer needed
		solve_walk(fit, strength, fit->y[q]);
		for (size_t p = 0; p < TUNE_QUANTITIES; p++)
			squares[q][p] = dot_product(fit->solved, fit->y[p], fit->m);
		sum_by_limit(fit, fit->solved, right);
		memcpy(fit->at[q], right, fit->n * sizeof(*right));
		cholesky_solve(fit->normal, fit->n, fit->at[q]);
		for (size_t p = 0; p <= q; p++)
			squares[q][p] -= dot_product(right, fit->at[p], fit->n);
	}
	cholesky_inverse(fit->normal, fit->n, fit->inverse);
	double degrees = (double)(fit->m - fit->n);
	double e = fmax(squares[TUNE_E][TUNE_E] / degrees, MIN_NOISE),
	       t = fmax(squares[TUNE_T][TUNE_T] / degrees, MIN_NOISE);
	double both = squares[TUNE_T][TUNE_E] / degrees, most = sqrt(e * t);
	fit->noise[TUNE_E][TUNE_E] = e;
	fit->noise[TUNE_T][TUNE_T] = t;
	fit->noise[TUNE_E][TUNE_T] = fit->noise[TUNE_T][TUNE_E] = fmin(fmax(both, -most), most);
	fit->likelihood = 0;
	if (fit->m > fit->n)
		fit->likelihood = -log_determinant - log_normal - degrees / 2 * (log(e) + log(t));
	return true;
}

/* The fit yields levels at the start of the walk. This moves them and their covariance to the mean of the search, where
 * the drift averages 0 over the windows. Differences between limits do not change. */
static void centre(struct fit *fit, const double *share, double *mean)
{
	size_t n = fit->n;
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		double middle = dot_product(share, fit->at[q], n);
		for (size_t i = 0; i < n; i++)
			fit->at[q][i] -= middle;
	}
	double all = 0;
	for (size_t i = 0; i < n; i++) {
		mean[i] = dot_product(share, fit->inverse + i * n, n);
		all += share[i] * mean[i];
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			fit->inverse[i * n + j] += all - mean[i] - mean[j] + 1 / (double)fit->m;
}

/* Drift from the first window to the last. The best estimate of the walk is r·W·(I + r·W)⁻¹·(y − fit) = (I − (I +
 * r·W)⁻¹)·(y − fit). Call before centre(). */
static double drift_of(struct fit *fit, double strength, enum tune_quantity q, double *left)
{
	for (size_t j = 0; j < fit->m; j++)
		left[j] = fit->y[q][j] - fit->at[q][column_of(fit, j)];
	solve_walk(fit, strength, left);
	size_t last = fit->m - 1;
	return left[last] - fit->solved[last] - left[0] + fit->solved[0];
}

static void add_fit(struct estimate *sum, const struct fit *fit, const size_t *limit_of, double weight)
{
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		for (size_t i = 0; i < fit->n; i++)
			sum->log[q][limit_of[i]] += weight * (sum->level[q] + fit->at[q][i]);
	for (size_t i = 0; i < fit->n; i++)
		for (size_t j = 0; j < fit->n; j++)
			sum->shape[limit_of[i] * sum->n + limit_of[j]] += weight * fit->inverse[i * fit->n + j];
	for (size_t q = 0; q < TUNE_QUANTITIES; q++)
		for (size_t p = 0; p < TUNE_QUANTITIES; p++)
			sum->noise[q][p] += weight * fit->noise[q][p];
}

// The counters' error remains even if the windows agree by chance, so it sets a minimum for the noise. energy_error_j
// is two standard deviations.
static void add_measurement_error(struct estimate *estimate, const struct tune_window *windows, size_t n)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		if (windows[i].energy_error_j > 0 && windows[i].energy_error_j <= windows[i].energy_j)
			squares += pow(windows[i].energy_error_j / windows[i].energy_j / 2, 2);
	double *noise = &estimate->noise[TUNE_E][TUNE_E];
	*noise = fmax(*noise, squares / (double)n);
}

static bool fit_init(struct fit *fit, struct arena *arena)
{
	double **rows[] = {&fit->y[TUNE_E], &fit->y[TUNE_T], &fit->steps, &fit->pivot, &fit->below, &fit->solved};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if ((*rows[i] = arena_alloc(arena, fit->m, sizeof(double))) == NULL)
			return false;
	fit->normal = arena_alloc(arena, fit->n * fit->n, sizeof(double));
	fit->inverse = arena_alloc(arena, fit->n * fit->n, sizeof(double));
	fit->at[TUNE_E] = arena_alloc(arena, fit->n, sizeof(double));
	fit->at[TUNE_T] = arena_alloc(arena, fit->n, sizeof(double));
	return fit->normal != NULL && fit->inverse != NULL && fit->at[TUNE_E] != NULL && fit->at[TUNE_T] != NULL;
}

static void fill_logs(struct fit *fit, double level[TUNE_QUANTITIES])
{
	for (size_t j = 0; j < fit->m; j++) {
		const struct tune_window *window = &fit->windows[j];
		fit->y[TUNE_E][j] = log(window->energy_j / window->steps);
		fit->y[TUNE_T][j] = log(window->time_s / window->steps);
	}
	for (size_t q = 0; q < TUNE_QUANTITIES; q++) {
		double sum = 0;
		for (size_t j = 0; j < fit->m; j++)
			sum += fit->y[q][j];
		level[q] = sum / (double)fit->m;
		for (size_t j = 0; j < fit->m; j++)
			fit->y[q][j] -= level[q];
	}
}

// A very long pause counts as at most 100 mean intervals of the walk.
static void fill_steps(struct fit *fit)
{
	double mean = 0;
	if (fit->m > 1)
		mean = (fit->windows[fit->m - 1].at_s - fit->windows[0].at_s) / (double)(fit->m - 1);
	fit->steps[0] = 1; // start of the walk: any value works, because the levels of the limits absorb it
	for (size_t j = 1; j < fit->m; j++) {
		double step = (fit->windows[j].at_s - fit->windows[j - 1].at_s) / mean;
		fit->steps[j] = isfinite(step) ? fmin(fmax(step, 0.01), 100) : 1;
	}
}

static int average(struct fit *fit, struct estimate *estimate, const size_t *limit_of, struct arena *arena)
{
	double *share = arena_alloc(arena, fit->n, sizeof(*share)), *mean = arena_alloc(arena, fit->n, sizeof(*mean));
	double *scratch = arena_alloc(arena, fit->m, sizeof(*scratch));
	if (share == NULL || mean == NULL || scratch == NULL)
		return -ENOMEM;
	for (size_t j = 0; j < fit->m; j++)
		share[column_of(fit, j)] += 1 / (double)fit->m;
	double likelihood[STRENGTHS], best = -INFINITY, sum = 0;
	for (size_t s = 0; s < STRENGTHS; s++) {
		likelihood[s] = fit_strength(fit, strengths[s], scratch) ? fit->likelihood : -INFINITY;
		best = fmax(best, likelihood[s]);
	}
	for (size_t s = 0; s < STRENGTHS; s++)
		sum += exp(likelihood[s] - best);
	for (size_t s = 0; s < STRENGTHS; s++) {
		double weight = exp(likelihood[s] - best) / sum;
		if (!(weight > 1e-6) || !fit_strength(fit, strengths[s], scratch))
			continue;
		for (size_t q = 0; q < TUNE_QUANTITIES; q++)
			estimate->drift[q] += weight * drift_of(fit, strengths[s], (enum tune_quantity)q, scratch);
		centre(fit, share, mean);
		add_fit(estimate, fit, limit_of, weight);
	}
	return 0;
}

int estimate_make(const struct tune_window *windows, size_t n_windows, size_t n_limits, struct arena *arena,
	struct estimate *ret_estimate)
{
	struct estimate estimate = {.n = n_limits};
	size_t *column = arena_alloc(arena, n_limits, sizeof(*column));
	size_t *limit_of = arena_alloc(arena, n_limits, sizeof(*limit_of)), n = 0;
	estimate.shape = arena_alloc(arena, n_limits * n_limits, sizeof(*estimate.shape));
	estimate.log[TUNE_E] = arena_alloc(arena, n_limits, sizeof(double));
	estimate.log[TUNE_T] = arena_alloc(arena, n_limits, sizeof(double));
	if (column == NULL || limit_of == NULL || estimate.shape == NULL || estimate.log[TUNE_E] == NULL ||
		estimate.log[TUNE_T] == NULL)
		return -ENOMEM;
	for (size_t j = 0; j < n_windows; j++)
		column[windows[j].limit] = 1;
	for (size_t i = 0; i < n_limits; i++) {
		if (column[i] == 0) {
			estimate.log[TUNE_E][i] = estimate.log[TUNE_T][i] = (double)NAN;
			continue;
		}
		limit_of[n] = i;
		column[i] = n++;
	}
	struct fit fit = {.m = n_windows, .n = n, .windows = windows, .column = column};
	if (!fit_init(&fit, arena))
		return -ENOMEM;
	fill_logs(&fit, estimate.level);
	fill_steps(&fit);
	int r = average(&fit, &estimate, limit_of, arena);
	if (r < 0)
		return r;
	estimate.degrees = n_windows - n;
	if (estimate.degrees == 0)
		for (size_t q = 0; q < TUNE_QUANTITIES; q++)
			estimate.noise[q][TUNE_E] = estimate.noise[q][TUNE_T] = (double)NAN;
	else
		add_measurement_error(&estimate, windows, n_windows);
	*ret_estimate = estimate;
	return 0;
}

double estimate_log(const struct estimate *estimate, size_t limit, double time_exponent)
{
	return estimate->log[TUNE_E][limit] + time_exponent * estimate->log[TUNE_T][limit];
}

double estimate_noise(const struct estimate *estimate, double time_exponent)
{
	const double(*noise)[TUNE_QUANTITIES] = estimate->noise;
	return noise[TUNE_E][TUNE_E] + 2 * time_exponent * noise[TUNE_E][TUNE_T] +
		time_exponent * time_exponent * noise[TUNE_T][TUNE_T];
}

double estimate_shape_of_difference(const struct estimate *estimate, size_t i, size_t j)
{
	const double *shape = estimate->shape;
	size_t n = estimate->n;
	if (i == j)
		return shape[i * n + i];
	return shape[i * n + i] + shape[j * n + j] - 2 * shape[i * n + j];
}

double t_quantile(size_t degrees)
{
	if (degrees < 3)
		return (const double[]){(double)NAN, 12.706204736, 4.302652730}[degrees];
	// Cornish-Fisher expansion about the normal quantile; within 0.2 % from 3 degrees of freedom on.
	double z = 1.959963985, z2 = z * z, d = (double)degrees;
	double a = z * (z2 + 1) / 4, b = z * ((5 * z2 + 16) * z2 + 3) / 96;
	double c = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	double e = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
	return z + (a + (b + (c + e / d) / d) / d) / d;
}
