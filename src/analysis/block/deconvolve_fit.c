#include "analysis/block/deconvolve_internal.h"

#include "base/cholesky.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>

// Standard deviations of the priors, relative to the mean power, in the update times, and in the interval's energy.
static const double drift_prior = 0.05, shift_prior_s = 1e-3, spread_prior_s = 2e-4;
static const double time_known_s = 2e-5; // lower limit for the error of update times
static const double left_out_cost =
	8; // 2 log of (deviation of an interval's energy from the mean because of blocks / noise_guess)
static const double steady = 2e-4; // lower limit for the relative noise of an interval
enum { NOISE_ROWS_MAX = 4000, NOISE_ROUNDS = 4 };

static double square(double x)
{
	return x * x;
}

int deconvolve_model_init(struct deconvolve_model *model, struct arena *arena)
{
	size_t p = model->n_columns, s = model->slots.n;
	model->power_w = arena_alloc(arena, s, sizeof(double));
	model->row = arena_alloc(arena, p, sizeof(double));
	model->white = arena_alloc(arena, DECONVOLVE_RANK * p, sizeof(double));
	model->rows_buffer = arena_alloc(arena, deconvolve_rows_buffer_size(s), sizeof(double));
	model->normal = arena_alloc(arena, p * p, sizeof(double));
	model->right = arena_alloc(arena, DECONVOLVE_ENERGIES * p, sizeof(double));
	model->solution = arena_alloc(arena, p, sizeof(double));
	bool all = model->power_w != NULL && model->row != NULL && model->white != NULL && model->rows_buffer != NULL &&
		model->normal != NULL && model->right != NULL && model->solution != NULL;
	return all ? 0 : -ENOMEM;
}

/* ---- the equations in order, decorrelated ---- */

struct walk {
	struct deconvolve_model *model;
	struct deconvolve_rows rows;
	size_t segment, n; // n: number of equations so far
	bool begun;
	double variance_j2;          // of the previous equation, decorrelated
	double length_s, residual_j; // of the current equation
	double white_j
		[DECONVOLVE_ENERGIES]; // decorrelated residuals of the current equation: of the explained energy, or of
				       // each of `energies`
	double *const *energies;       // NULL: the energy that the segments explain
	const double *white;           // coefficients of the current equation, decorrelated
	size_t pending;                // number of equations in model->white that are not in the normal equations yet
	double weights[DECONVOLVE_RANK];
};

static void sweep_begin(struct walk *walk, struct deconvolve_model *model, double *const *energies)
{
	*walk = (struct walk){.model = model, .energies = energies};
	walk->rows = (struct deconvolve_rows){.run_s = model->run_s,
		.n_slots = model->slots.n,
		.n_columns = model->n_columns,
		.power_w = model->solved ? model->power_w : NULL};
}

static bool next_row(struct walk *walk, double *ret_j)
{
	const struct deconvolve_model *model = walk->model;
	for (; walk->segment < model->n_segments; walk->segment++, walk->begun = false) {
		if (model->segments[walk->segment].updates.n < 2)
			continue;
		if (!walk->begun) {
			deconvolve_rows_begin(&walk->rows, &model->segments[walk->segment], model->timeline,
				&model->slots, model->rows_buffer);
			walk->variance_j2 = INFINITY;
			walk->begun = true;
		}
		if (deconvolve_rows_next(&walk->rows, model->row, ret_j))
			return true;
	}
	return false;
}

static void make_independent(struct walk *walk, size_t energy, double residual_j, double theta)
{
	walk->white_j[energy] = residual_j - theta * (walk->n > 0 ? walk->white_j[energy] : 0);
}

/* The error of a misplaced update is in the interval before it and, with the opposite sign, in the one after it.
 * Subtracting the part predicted from the previous equation (innovations of a moving average) gives independent
 * equations. */
static bool sweep_next(struct walk *walk)
{
	struct deconvolve_model *model = walk->model;
	double j, length_s = 0;
	if (!next_row(walk, &j))
		return false;
	for (size_t i = 0; i < model->slots.n; i++)
		length_s += model->row[i];
	double variance_j2 = model->noise.white_j2_s * fmax(length_s, 1e-6) + 2 * model->noise.update_j2;
	double theta = -model->noise.update_j2 / walk->variance_j2; // 0 for the first equation of a segment
	variance_j2 -= square(model->noise.update_j2) / walk->variance_j2;
	walk->residual_j = j - model->mean_w * length_s;
	if (walk->energies == NULL)
		make_independent(walk, 0, walk->residual_j, theta);
	for (size_t e = 0; walk->energies != NULL && e < DECONVOLVE_ENERGIES; e++) {
		const double *j_since = walk->energies[e];
		if (j_since != NULL)
			make_independent(walk, e,
				j_since[walk->rows.now] - j_since[walk->rows.before_now] - model->mean_w * length_s,
				theta);
	}
	double *white = model->white + walk->pending * model->n_columns;
	if (walk->n > 0)
		deconvolve_subtract(white, model->row, theta, walk->white, model->n_columns);
	else
		memcpy(white, model->row, model->n_columns * sizeof(*white));
	walk->white = white;
	walk->variance_j2 = variance_j2;
	walk->length_s = length_s;
	walk->n++;
	return true;
}

// Row i of the lower triangle: adds the products of the pending equations, in their order.
__attribute__((no_sanitize("address", "undefined"))) static void add_products(const struct walk *walk, size_t i,
	double *restrict sums)
{
	size_t p = walk->model->n_columns;
	const double *restrict a = walk->model->white, *restrict b = a + p, *restrict c = b + p, *restrict d = c + p;
	double x = walk->weights[0] * a[i], y = walk->weights[1] * b[i], z = walk->weights[2] * c[i],
	       w = walk->weights[3] * d[i];
	for (size_t j = 0; j <= i; j++)
		sums[j] = sums[j] + x * a[j] + y * b[j] + z * c[j] + w * d[j];
}

/* Adds the pending equations to the normal equations, DECONVOLVE_RANK at once, because loads and stores of the sums would
 * take most of the time. The last row is added here, under the sanitizers. */
static void flush(struct walk *walk, double *normal)
{
	size_t p = walk->model->n_columns, last = p - 1;
	static_assert(DECONVOLVE_RANK == 4, "add_products adds four equations");
	bool full = walk->pending == DECONVOLVE_RANK;
	for (size_t i = 0; full && i < last; i++)
		add_products(walk, i, normal + i * p);
	for (size_t k = 0; k < walk->pending; k++) {
		const double *white = walk->model->white + k * p;
		for (size_t i = full ? last : 0; i < p; i++)
			deconvolve_add(normal + i * p, walk->weights[k] * white[i], white, i + 1);
	}
	walk->pending = 0;
}

// Adds the current equation to the normal equations of each energy. flush must follow the last one.
static void accumulate(struct walk *walk, double *normal, double *right)
{
	size_t p = walk->model->n_columns;
	double weight = 1 / walk->variance_j2;
	walk->weights[walk->pending++] = weight;
	for (size_t e = 0; e < DECONVOLVE_ENERGIES; e++)
		if (walk->white_j[e] != 0) // 0 for a missing energy
			deconvolve_add(right + e * p, weight * walk->white_j[e], walk->white, p);
	if (walk->pending == DECONVOLVE_RANK)
		flush(walk, normal);
}

// Prior precision (1 / variance) of an unknown.
static double prior(const struct deconvolve_model *model, size_t column)
{
	size_t s = model->slots.n;
	if (column < s)
		return 1 / square(model->mean_w);
	if (column < s + DECONVOLVE_DRIFTS)
		return square((double)(column - s + 1) / (drift_prior * model->mean_w));
	return 1 /
		square((column - s - DECONVOLVE_DRIFTS) % DECONVOLVE_ERROR_COLUMNS == 2 ? spread_prior_s
											: shift_prior_s);
}

static void solve_for(struct deconvolve_model *model, const double *normal, const double *right)
{
	memcpy(model->solution, right, model->n_columns * sizeof(double));
	cholesky_solve(normal, model->n_columns, model->solution);
}

static bool factor(const struct deconvolve_model *model, double *normal)
{
	size_t p = model->n_columns;
	for (size_t i = 0; i < p; i++)
		normal[i * p + i] += prior(model, i);
	return cholesky_factor(normal, p);
}

static bool solve(struct deconvolve_model *model, double *normal, const double *right)
{
	if (!factor(model, normal))
		return false;
	solve_for(model, normal, right);
	return true;
}

static void clear(struct deconvolve_model *model)
{
	memset(model->normal, 0, model->n_columns * model->n_columns * sizeof(double));
	memset(model->right, 0, DECONVOLVE_ENERGIES * model->n_columns * sizeof(double));
}

// Log determinant of the information gained relative to the prior.
static double prior_weight(const struct deconvolve_model *model)
{
	double sum = 0;
	for (size_t i = 0; i < model->n_columns; i++)
		sum += log(square(model->normal[i * model->n_columns + i]) / prior(model, i));
	return sum;
}

// Squared residuals of an energy at the best powers, which become the solution.
static double left_of(struct deconvolve_model *model, size_t energy, double squares)
{
	const double *right = model->right + energy * model->n_columns;
	solve_for(model, model->normal, right);
	for (size_t i = 0; i < model->n_columns; i++)
		squares -= right[i] * model->solution[i];
	return fmax(squares, 1e-12);
}

double deconvolve_misfit(struct deconvolve_model *model, size_t rows_max, enum deconvolve_energy_kind *ret_energy)
{
	double *const *energies = model->segments[0].updates.energies;
	struct walk walk;
	double squares[DECONVOLVE_ENERGIES] = {0}, least = INFINITY;
	clear(model);
	sweep_begin(&walk, model, energies);
	size_t last = 0, left_out = 0;
	while (last < rows_max && sweep_next(&walk)) {
		left_out += walk.rows.now - walk.rows.before_now - 1;
		last = walk.rows.now;
		accumulate(&walk, model->normal, model->right);
		for (size_t e = 0; e < DECONVOLVE_ENERGIES; e++)
			squares[e] += square(walk.white_j[e]) / walk.variance_j2;
	}
	flush(&walk, model->normal);
	*ret_energy = DECONVOLVE_OF_TARGET;
	if (walk.n == 0 || !factor(model, model->normal))
		return INFINITY;
	for (size_t e = 0; e < DECONVOLVE_ENERGIES; e++) {
		double left = energies[e] != NULL ? left_of(model, e, squares[e]) : INFINITY;
		if (left < least)
			*ret_energy = (enum deconvolve_energy_kind)e;
		least = fmin(left, least);
	}
	solve_for(model, model->normal, model->right + *ret_energy * model->n_columns);
	/* The energy at a left-out update is one more unknown, with the error of an interval's energy as its prior. */
	return (double)(walk.n + left_out) * log(least) + prior_weight(model) + (double)left_out * left_out_cost;
}

void deconvolve_set_powers(struct deconvolve_model *model)
{
	for (size_t i = 0; i < model->slots.n; i++)
		model->power_w[i] = model->mean_w + model->solution[i];
	model->solved = true;
}

/* ---- noise ---- */

static double fitted_j(const struct deconvolve_model *model, const double *row)
{
	double j = 0;
	for (size_t i = 0; i < model->n_columns; i++)
		j += row[i] * model->solution[i];
	return j;
}

// Estimates the noise from the residuals, by the covariance of neighbours.
static void measure_noise(struct deconvolve_model *model)
{
	struct walk walk;
	double squares = 0, neighbours = 0, length_s = 0, before_j = 0;
	sweep_begin(&walk, model, NULL);
	while (walk.n < NOISE_ROWS_MAX && sweep_next(&walk)) {
		double left_j = walk.residual_j - fitted_j(model, model->row);
		squares += square(left_j);
		neighbours += left_j * before_j;
		length_s += walk.length_s;
		before_j = left_j;
	}
	double n = (double)walk.n, free_n = fmax(n - (double)model->n_columns, n / 4);
	squares /= free_n;
	neighbours /= free_n;
	double update_j2 = fmin(fmax(-neighbours, 0), 0.499 * squares);
	double min_j2 = square(model->quantum_j) / 12 + square(model->mean_w * time_known_s);
	model->noise.update_j2 = fmax(update_j2, min_j2);
	model->noise.misplaced_j2 = fmax(update_j2 - min_j2 - 2 * squares / sqrt(n), 0);
	double white_j2 = fmax(squares - 2 * update_j2, 0.002 * squares);
	model->noise.white_j2_s = fmax(white_j2 * n / length_s, square(model->mean_w * steady) * length_s / n);
}

static bool fix_signs(struct deconvolve_model *model)
{
	struct walk walk;
	clear(model);
	sweep_begin(&walk, model, NULL);
	while (walk.n < NOISE_ROWS_MAX && sweep_next(&walk))
		accumulate(&walk, model->normal, model->right);
	flush(&walk, model->normal);
	if (walk.n == 0 || !solve(model, model->normal, model->right))
		return false;
	deconvolve_set_powers(model);
	return true;
}

/* ---- the solution and its errors ---- */

struct batches {
	double *normal, *right, *score; // DECONVOLVE_BATCHES each
};

static size_t batch_of(const struct deconvolve_model *model, size_t row)
{
	return row * DECONVOLVE_BATCHES / model->n_rows;
}

static int allocate(struct batches *batches, struct deconvolve_model *model, struct arena *arena)
{
	size_t p = model->n_columns, s = model->slots.n;
	batches->normal = arena_alloc(arena, DECONVOLVE_BATCHES * p, p * sizeof(double));
	batches->right = arena_alloc(arena, DECONVOLVE_BATCHES * p, sizeof(double));
	batches->score = arena_alloc(arena, DECONVOLVE_BATCHES * p, sizeof(double));
	model->batches = arena_alloc(arena, DECONVOLVE_BATCHES * s, sizeof(double));
	model->unknown = arena_alloc(arena, s * s, sizeof(double));
	bool all = batches->normal != NULL && batches->right != NULL && batches->score != NULL &&
		model->batches != NULL && model->unknown != NULL;
	return all ? 0 : -ENOMEM;
}

static void add_batches(struct deconvolve_model *model, struct batches *batches)
{
	size_t p = model->n_columns;
	struct walk walk;
	sweep_begin(&walk, model, NULL);
	for (size_t row = 0; sweep_next(&walk); row++) {
		size_t batch = batch_of(model, row);
		double *normal = batches->normal + batch * p * p;
		accumulate(&walk, normal, batches->right + batch * p);
		if (batch_of(model, row + 1) != batch || row + 1 >= model->n_rows)
			flush(&walk, normal);
	}
	clear(model);
	for (size_t b = 0; b < DECONVOLVE_BATCHES; b++) {
		for (size_t i = 0; i < p * p; i++)
			model->normal[i] += batches->normal[b * p * p + i];
		for (size_t i = 0; i < p; i++)
			model->right[i] += batches->right[b * p + i];
	}
}

// Residual of each batch's normal equations at the solution: right - normal × solution.
static void score(const struct deconvolve_model *model, const double *normal, const double *right, double *ret_score)
{
	size_t p = model->n_columns;
	for (size_t i = 0; i < p; i++) {
		double sum = right[i];
		for (size_t j = 0; j < p; j++)
			sum -= (j <= i ? normal[i * p + j] : normal[j * p + i]) * model->solution[j];
		ret_score[i] = sum;
	}
}

/* Change of the powers when a batch is left out. Its variance is valid for any noise, also if the noise is correlated
 * between intervals or varies over time (delete-one jackknife). */
static bool leave_out(struct deconvolve_model *model, const struct batches *batches, const double *all, double *work,
	size_t batch)
{
	size_t p = model->n_columns;
	const double *normal = batches->normal + batch * p * p;
	double *change = batches->score + batch * p;
	score(model, normal, batches->right + batch * p, change);
	for (size_t i = 0; i < p * p; i++)
		work[i] = all[i] - normal[i];
	for (size_t i = 0; i < p; i++)
		work[i * p + i] += prior(model, i);
	if (!cholesky_factor(work, p))
		return false;
	cholesky_solve(work, p, change);
	memcpy(model->batches + batch * model->slots.n, change, model->slots.n * sizeof(double));
	return true;
}

/* The prior determines the powers that the equations leave undetermined, with the error of the prior: A⁻¹ Λ A⁻¹, with
 * the prior Λ and the normal equations A. */
static void leave_open(struct deconvolve_model *model, const double *factor, double *inverse)
{
	size_t p = model->n_columns, s = model->slots.n;
	cholesky_inverse(factor, p, inverse);
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++)
			for (size_t k = 0; k < p; k++)
				model->unknown[i * s + j] += inverse[i * p + k] * prior(model, k) * inverse[j * p + k];
}

int deconvolve_solve(struct deconvolve_model *model, struct arena *arena)
{
	struct batches batches;
	size_t p = model->n_columns;
	double *all = arena_alloc(arena, p * p, sizeof(double)), *work = arena_alloc(arena, p * p, sizeof(double));
	if (all == NULL || work == NULL || allocate(&batches, model, arena) < 0)
		return -ENOMEM;
	for (int i = 0; i < NOISE_ROUNDS; i++) {
		if (!fix_signs(model))
			return 0;
		measure_noise(model);
	}
	add_batches(model, &batches);
	memcpy(all, model->normal, p * p * sizeof(double));
	if (!solve(model, model->normal, model->right))
		return 0;
	deconvolve_set_powers(model);
	for (size_t b = 0; b < DECONVOLVE_BATCHES; b++)
		if (!leave_out(model, &batches, all, work, b))
			return 0;
	leave_open(model, model->normal, work);
	return 0;
}
