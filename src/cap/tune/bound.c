/* Minimum energy within a bound on time. A lower limit never makes a step faster. Once the curve of T has passed the
 * bound on its way down from the reference, no lower limit is allowed, whatever noise does to the curve there. */
#include "cap/tune/internal.h"

#include "base/util.h"

size_t last_within_bound(const struct figures *figures)
{
	size_t g = 0;
	while (g + 1 < figures->n_grid && figures_curve(figures, TUNE_T, g + 1) <= figures->bound)
		g++;
	return g;
}

size_t choose_within_bound(const struct figures *figures)
{
	size_t best = 0, last = last_within_bound(figures);
	double least = 0;
	for (size_t g = 1; g <= last; g++) {
		double limit = figures->grid[g], value = figures_curve(figures, TUNE_E, g);
		if (value < least && (limit == floor(limit) || g + 1 == figures->n_grid)) {
			least = value;
			best = g;
		}
	}
	return best;
}
