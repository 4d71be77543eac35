/* Bounds by transformation: the fit uses logs of the positive parameters (a, −b, d, e, g) and maps the centre of the
 * sigmoid, f/e, into the range of the limits by a logistic function. a and c are redundant, so c is set to b·x_low: a
 * is then the height of the exponential at the lowest limit. Weak priors, added as residuals, determine the parameters
 * that few limits leave undetermined. */
#include "cap/tune/internal.h"

#include "base/util.h"

#include <cminpack.h>

// Programs that use the static library without tuning need not link cminpack.
#pragma weak lmder

enum { FALL, FALL_RATE, RISE, RISE_RATE, RISE_AT, LEVEL };

// Prior of each of the six parameters: mean and standard deviation.
static const struct {
	double at, scale;
} expected[MODEL_SHAPE] = {
	[FALL] = {-1.5, 2},
	[FALL_RATE] = {2.3, 0.7},
	[RISE] = {-1.5, 2},
	[RISE_RATE] = {1.8, 0.7},
	[RISE_AT] = {0, 1.5},
	[LEVEL] = {-0.2, 0.5},
};

// Starting points with strong or weak decrease and increase.
static const double starts[][MODEL_SHAPE] = {
	{-1.5, 2.3, -1.5, 1.8, 0, -0.2},
	{0.5, 2.8, -3, 2.3, 1, -0.1},
	{-4, 2.3, -0.7, 1.5, -0.5, -0.5},
};

struct parts {
	double fall, rise, slope, middle, share,
		value; // slope: of the sigmoid; share: value of the logistic that gives its centre
};

static const double MIDDLE_LOW = -0.2,
		    MIDDLE_HIGH = 1.3; // bounds of the sigmoid's centre, relative to the range of limits: beyond them
		                       // it is a line

static struct parts parts_at(const double *shape, double x_low, double x)
{
	struct parts parts;
	parts.share = 1 / (1 + exp(-shape[RISE_AT]));
	parts.middle = x_low + (1 - x_low) * (MIDDLE_LOW + (MIDDLE_HIGH - MIDDLE_LOW) * parts.share);
	double sigmoid = 1 / (1 + exp(-exp(shape[RISE_RATE]) * (x - parts.middle)));
	parts.fall = exp(shape[FALL] - exp(shape[FALL_RATE]) * (x - x_low));
	parts.rise = exp(shape[RISE]) * sigmoid;
	parts.slope = parts.rise * (1 - sigmoid) * exp(shape[RISE_RATE]);
	parts.value = parts.fall + parts.rise + exp(shape[LEVEL]);
	return parts;
}

double seed_model_at(const double *shape, double x_low, double x)
{
	return log(parts_at(shape, x_low, x).value);
}

struct task {
	const struct model_points *points;
	size_t left_out;
};

static void fill_residuals(const struct task *task, const double *shape, double *residuals)
{
	const struct model_points *points = task->points;
	for (size_t i = 0; i < points->n; i++) {
		residuals[i] = (seed_model_at(shape, points->x_low, points->x[i]) - points->y[i]) / points->s[i];
		if (i == task->left_out)
			residuals[i] = 0;
	}
	for (size_t k = 0; k < MODEL_SHAPE; k++)
		residuals[points->n + k] = (shape[k] - expected[k].at) / expected[k].scale;
}

static void fill_slopes(const struct task *task, const double *shape, double *jacobian, size_t rows)
{
	const struct model_points *points = task->points;
	memset(jacobian, 0, rows * MODEL_SHAPE * sizeof(*jacobian));
	for (size_t i = 0; i < points->n; i++) {
		struct parts parts = parts_at(shape, points->x_low, points->x[i]);
		double unit = i == task->left_out ? 0 : 1 / (parts.value * points->s[i]);
		double middle_slope = (1 - points->x_low) * (MIDDLE_HIGH - MIDDLE_LOW) * parts.share *
			(1 - parts.share);
		jacobian[FALL * rows + i] = parts.fall * unit;
		jacobian[FALL_RATE * rows + i] = -parts.fall * exp(shape[FALL_RATE]) * (points->x[i] - points->x_low) *
			unit;
		jacobian[RISE * rows + i] = parts.rise * unit;
		jacobian[RISE_RATE * rows + i] = parts.slope * (points->x[i] - parts.middle) * unit;
		jacobian[RISE_AT * rows + i] = -parts.slope * middle_slope * unit;
		jacobian[LEVEL * rows + i] = exp(shape[LEVEL]) * unit;
	}
	for (size_t k = 0; k < MODEL_SHAPE; k++)
		jacobian[k * rows + points->n + k] = 1 / expected[k].scale;
}

static int residuals_or_slopes(void *task, int m, int n, const double *shape, double *residuals, double *jacobian,
	int rows, int wanted)
{
	(void)m;
	(void)n;
	if (wanted == 1)
		fill_residuals(task, shape, residuals);
	else
		fill_slopes(task, shape, jacobian, (size_t)rows);
	return 0;
}

enum { POINTS_MAX = 256, ROWS_MAX = POINTS_MAX + MODEL_SHAPE };

// Returns the sum of squares; NaN: the fit failed.
static double minimise(struct task *task, double *shape)
{
	double residuals[ROWS_MAX], jacobian[ROWS_MAX * MODEL_SHAPE], scale[MODEL_SHAPE], qtf[MODEL_SHAPE];
	double work[3][MODEL_SHAPE], work_rows[ROWS_MAX];
	int pivots[MODEL_SHAPE], evaluations, jacobians, rows = (int)task->points->n + MODEL_SHAPE;
	int info = lmder(residuals_or_slopes, task, rows, MODEL_SHAPE, shape, residuals, jacobian, rows, 1e-9, 1e-9, 0,
		100, scale, 1, 10, 0, &evaluations, &jacobians, pivots, qtf, work[0], work[1], work[2], work_rows);
	if (info <= 0)
		return (double)NAN;
	double sum = 0;
	for (int i = 0; i < rows; i++)
		sum += residuals[i] * residuals[i];
	return sum;
}

bool seed_model_fit(const struct model_points *points, size_t left_out, const double *start, double *ret_shape)
{
	struct task task = {points, left_out};
	if (points->n > POINTS_MAX)
		return false;
	double best = (double)NAN;
	for (size_t i = 0; i < (start != NULL ? 1 : ARRAY_SIZE(starts)); i++) {
		double shape[MODEL_SHAPE];
		memcpy(shape, start != NULL ? start : starts[i], sizeof(shape));
		double sum = minimise(&task, shape);
		if (!isfinite(sum) || sum >= best)
			continue;
		best = sum;
		memcpy(ret_shape, shape, sizeof(shape));
	}
	return isfinite(best);
}

bool seed_model_is_linked(void)
{
	return lmder != NULL;
}

size_t seed_model_parameters(const double *shape, double x_low, double ret_parameters[7])
{
	struct parts parts = parts_at(shape, x_low, x_low);
	double b = -exp(shape[FALL_RATE]), e = exp(shape[RISE_RATE]);
	const double parameters[7] = {exp(shape[FALL]), b, b * x_low, exp(shape[RISE]), e, e * parts.middle,
		exp(shape[LEVEL])};
	memcpy(ret_parameters, parameters, sizeof(parameters));
	return 7;
}
