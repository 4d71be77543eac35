/* Small dense symmetric systems, as in least squares. Matrices are n × n, row by row; only the lower triangle of a
 * symmetric matrix is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

double dot_product(const double *a, const double *b, size_t n);
// Factors a = L Lᵀ in place (L in the lower triangle). Returns false if a is not positive definite; a is then invalid.
bool cholesky_factor(double *a, size_t n);
void cholesky_solve(const double *l, size_t n, double *x); // solves L Lᵀ y = x for y, in place
void cholesky_inverse(const double *l, size_t n, double *ret_inverse);
