/* a·exp(b·x − c) + d·sigmoid(e·x − f) + g: what falls and what rises with the limit, and what does not change. */
#pragma once

#include "cap/tune/model.h"

// `start` NULL: fixed starting points. As model_fit.
bool seed_model_fit(const struct model_points *points, size_t left_out, const double *start, double *ret_shape);
// False in a static program that was linked without cminpack.
bool seed_model_is_linked(void);
double seed_model_at(const double *shape, double x_low, double x);
size_t seed_model_parameters(const double *shape, double x_low, double ret_parameters[7]);
