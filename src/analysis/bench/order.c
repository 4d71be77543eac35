#include "analysis/bench/order.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>

void order_sort(double *values, size_t n)
{
	if (n > 1)
		qsort(values, n, sizeof(*values), compare_doubles);
}

double order_median(const double *sorted, size_t n)
{
	if (n == 0)
		return (double)NAN;
	return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Hoare's selection: partitions the values around the middle one until the part that contains the wanted index is
 * sorted. Equal values are swapped too, so that the part also halves with many ties. */
double order_select(double *values, size_t n, size_t which)
{
	size_t first = 0, last = n - 1;
	while (first < last) {
		double pivot = values[first + (last - first) / 2];
		size_t up = first, down = last;
		for (;; up++, down--) {
			while (values[up] < pivot)
				up++;
			while (values[down] > pivot)
				down--;
			if (up >= down)
				break;
			double swapped = values[up];
			values[up] = values[down];
			values[down] = swapped;
		}
		if (which <= down)
			last = down;
		else
			first = down + 1;
	}
	return values[which];
}
