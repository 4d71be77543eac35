/* Small dense symmetric systems: what least squares need. Matrices are n × n, row by row; of the symmetric ones only the
 * lower triangle is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

double dot_product(const double *a, const double *b, size_t n);
// a = L Lᵀ in place (L in the lower triangle). false: not positive definite, a is spoilt.
bool cholesky_factor(double *a, size_t n);
void cholesky_solve(const double *l, size_t n, double *x); // L Lᵀ x = x, in place
void cholesky_inverse(const double *l, size_t n, double *ret_inverse);
