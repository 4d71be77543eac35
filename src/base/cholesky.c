#include "base/cholesky.h"

#include "base/util.h"

double dot_product(const double *a, const double *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

bool cholesky_factor(double *a, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double *row = a + i * n;
		for (size_t j = 0; j < i; j++)
			row[j] = (row[j] - dot_product(row, a + j * n, j)) / a[j * n + j];
		double left = row[i] - dot_product(row, row, i);
		if (!(left > 0))
			return false;
		row[i] = sqrt(left);
	}
	return true;
}

void cholesky_solve(const double *l, size_t n, double *x)
{
	size_t first = 0;
	while (first < n && x[first] == 0) // as in cholesky_inverse: the solution begins with as many zeros
		first++;
	for (size_t i = first; i < n; i++)
		x[i] = (x[i] - dot_product(l + i * n + first, x + first, i - first)) / l[i * n + i];
	for (size_t i = n; i-- > 0;) {
		x[i] /= l[i * n + i];
		for (size_t j = 0; j < i; j++)
			x[j] -= l[i * n + j] * x[i];
	}
}

void cholesky_inverse(const double *l, size_t n, double *ret_inverse)
{
	memset(ret_inverse, 0, n * n * sizeof(*ret_inverse));
	for (size_t i = 0; i < n; i++) {
		ret_inverse[i * n + i] = 1;
		cholesky_solve(l, n, ret_inverse + i * n); // symmetric: its columns are its rows
	}
}
