/* Models of the objective against the limit. Limits in parts of the reference, objectives as logarithms of their
 * ratio to the reference's: of order 1, whatever the device and the unit. */
#pragma once

#include "cap/tune/tune.h"

enum { MODEL_SHAPE = 6 }; // what a fit moves: of the seed's seven, a and c say the same

struct model_points {
	size_t n;
	const double *x; // limits, in parts of the reference
	const double *y; // logarithms of the objective
	const double *s; // how far a point may lie off the curve: noise, and what matters less the worse the limit is
	double x_low;    // the least limit
};

struct model {
	enum tune_model kind;
	double shape[MODEL_SHAPE];
	double x_low;
};

/* Fits to all points but `left_out` (n: to all). `start` is a fit nearby to begin at, NULL: fixed starting points.
 * false: it can't be fitted. */
bool model_fit(enum tune_model kind, const struct model_points *points, size_t left_out, const struct model *start,
	struct model *ret_model);
double model_at(const struct model *model, double x);
double model_loss(const struct model *model, const struct model_points *points); // mean of squares, in `s`

// The mean over the points of how badly the others foretell it, in squares of `s`. NaN: can't be said.
double model_cross_validate(const struct model *model, const struct model_points *points);

size_t model_parameters(const struct model *model, double ret_parameters[7]); // as documented
