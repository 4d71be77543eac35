/* Windows into one figure a limit: the logarithms of energy and time per step with the drift taken off, and how sure
 * they are. The noise is pooled over all limits. */
#pragma once

#include "base/arena.h"
#include "base/dice.h"
#include "cap/tune/tune.h"

enum tune_quantity { TUNE_E, TUNE_T, TUNE_QUANTITIES };

struct estimate {
	size_t n;                                       // limits
	double *log[TUNE_QUANTITIES];                   // of J and s a step; NaN: no window of this limit
	double *shape;                                  // n × n; covariance of the logs is shape × noise
	double noise[TUNE_QUANTITIES][TUNE_QUANTITIES]; // covariance of one window's logs; NaN: can't be told
	size_t degrees;                                 // of freedom of the noise
	double drift[TUNE_QUANTITIES];                  // of the logs, from the first window to the last
	double level[TUNE_QUANTITIES];                  // mean of all windows' logs
};

/* `windows` in the order of at_s, all good. Memory in the arena. -ENOMEM. */
int estimate_make(const struct tune_window *windows, size_t n_windows, size_t n_limits, struct arena *arena,
	struct estimate *ret_estimate);

// log(E·T^k) of a limit, the variance of one window's, and of the difference between two limits' figures (i == j: of
// one).
double estimate_log(const struct estimate *estimate, size_t limit, double time_exponent);
double estimate_noise(const struct estimate *estimate, double time_exponent);
double estimate_shape_of_difference(const struct estimate *estimate, size_t i, size_t j);

double t_quantile(size_t degrees); // 97.5 %: half the width of a 95 % interval in standard errors; NaN for 0 degrees
