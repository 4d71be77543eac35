#include "cap/tune/internal.h"

#include "base/util.h"

enum { CONVEX_TERMS = 3 };

// Weighted least squares of y on 1, u, u², by elimination; the matrix is 3 × 3 and positive definite.
static bool solve_small(double a[CONVEX_TERMS][CONVEX_TERMS + 1], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!(a[i][i] > 1e-12))
			return false;
		for (size_t j = i + 1; j < n; j++) {
			double factor = a[j][i] / a[i][i];
			for (size_t k = i; k <= n; k++)
				a[j][k] -= factor * a[i][k];
		}
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t k = i + 1; k < n; k++)
			a[i][n] -= a[i][k] * a[k][n];
		a[i][n] /= a[i][i];
	}
	return true;
}

static bool fit_polynomial(const struct model_points *points, size_t left_out, size_t terms, double *ret_shape)
{
	double a[CONVEX_TERMS][CONVEX_TERMS + 1] = {0}, heaviest = 0;
	for (size_t i = 0; i < points->n; i++)
		heaviest = i == left_out ? heaviest : fmax(heaviest, 1 / points->s[i]);
	for (size_t i = 0; i < points->n; i++) {
		double u = log(points->x[i]), power[2 * CONVEX_TERMS] = {1},
		       weight = pow(1 / points->s[i] / heaviest, 2);
		if (i == left_out)
			continue;
		for (size_t k = 1; k < ARRAY_SIZE(power); k++)
			power[k] = power[k - 1] * u;
		for (size_t r = 0; r < terms; r++) {
			for (size_t c = 0; c < terms; c++)
				a[r][c] += weight * power[r + c];
			a[r][terms] += weight * power[r] * points->y[i];
		}
	}
	if (!solve_small(a, terms))
		return false;
	for (size_t k = 0; k < terms; k++)
		ret_shape[k] = a[k][terms];
	return true;
}

// A parabola of the logs that opens upwards, or a line.
static bool fit_convex(const struct model_points *points, size_t left_out, double *ret_shape)
{
	double shape[MODEL_SHAPE] = {0};
	size_t used = points->n - (left_out < points->n);
	bool fitted = used >= 3 && fit_polynomial(points, left_out, 3, shape);
	if (!fitted || shape[2] < 0) {
		shape[2] = 0;
		if (used < 2 || !fit_polynomial(points, left_out, 2, shape))
			return false;
	}
	memcpy(ret_shape, shape, sizeof(shape));
	return true;
}

bool model_fit(enum tune_model kind, const struct model_points *points, size_t left_out, const struct model *start,
	struct model *ret_model)
{
	struct model model = {.kind = kind, .x_low = points->x_low};
	bool fitted = kind == TUNE_SEED_MODEL
		? seed_model_fit(points, left_out, start != NULL ? start->shape : NULL, model.shape)
		: fit_convex(points, left_out, model.shape);
	if (fitted)
		*ret_model = model;
	return fitted;
}

double model_at(const struct model *model, double x)
{
	if (model->kind == TUNE_SEED_MODEL)
		return seed_model_at(model->shape, model->x_low, x);
	double u = log(x);
	return model->shape[0] + u * (model->shape[1] + u * model->shape[2]);
}

double model_loss(const struct model *model, const struct model_points *points)
{
	double sum = 0;
	for (size_t i = 0; i < points->n; i++)
		sum += pow((points->y[i] - model_at(model, points->x[i])) / points->s[i], 2);
	return sum / (double)points->n;
}

double model_cross_validate(const struct model *model, const struct model_points *points)
{
	static const double MOST = 25; // limits the influence of a single limit that can't be predicted
	double sum = 0;
	for (size_t i = 0; i < points->n; i++) {
		struct model without;
		if (!model_fit(model->kind, points, i, model, &without))
			return (double)NAN;
		sum += fmin(pow((points->y[i] - model_at(&without, points->x[i])) / points->s[i], 2), MOST);
	}
	return sum / (double)points->n;
}

size_t model_parameters(const struct model *model, double ret_parameters[7])
{
	if (model->kind == TUNE_SEED_MODEL)
		return seed_model_parameters(model->shape, model->x_low, ret_parameters);
	memcpy(ret_parameters, model->shape, CONVEX_TERMS * sizeof(double));
	return CONVEX_TERMS;
}
