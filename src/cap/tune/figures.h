/* What the search came to, in logarithms against the reference, and the limits that may be chosen. */
#pragma once

#include "cap/tune/estimate.h"
#include "cap/tune/model.h"
#include "cap/tune/tuner.h"

#include <stdbool.h>

struct figures {
	enum tune_goal goal;
	double time_exponent, bound; // bound: of log T, TUNE_SLOWDOWN
	size_t n;                    // measured limits, descending; [0] is the reference
	double *limit, *x;           // x: in parts of the reference
	double *log[TUNE_QUANTITIES];
	double *shape; // n × n
	double noise[TUNE_QUANTITIES][TUNE_QUANTITIES];
	double noise_of_objective;
	size_t degrees;
	double *y, *s; // the objective and how far off the curve it may lie, for models

	// Limits that may be chosen: whole ones and the measured ones, descending; [0] is the reference.
	size_t n_grid;
	double *grid;
	size_t *grid_of;                  // n: where a measured limit stands in the grid
	double *weights[TUNE_QUANTITIES]; // n_grid × n: a smooth curve near the logs of E and of T is weights × log
	double *exact[TUNE_QUANTITIES];   // the same for a smooth curve through them
	double *doubt[TUNE_QUANTITIES];   // n × n: covariance of the truth about the curve, at the measured limits
};

// -ENOMEM. `limits` has the n limits of the estimate.
int figures_make(const struct estimate *estimate, const double *limits, enum tune_goal goal, double slowdown_percent,
	struct arena *arena, struct figures *ret_figures);

struct model_points figures_points(const struct figures *figures);
double figures_curve(const struct figures *figures, enum tune_quantity quantity, size_t at); // log, smooth

// Fills the weights of the curves. -ENOMEM.
int curves_make(struct figures *figures, struct arena *arena);

struct choice {
	size_t at;          // in the grid
	struct model model; // kind TUNE_NO_MODEL: the best measured limit
	double residual;    // of the model, standard deviation of the log; NaN none
	const char *why;    // for the note; "" nothing to say
};

struct choice choose(const struct figures *figures, struct arena *arena);
double choice_curve(const struct figures *figures, const struct choice *choice,
	size_t at);                                        // log objective; NaN: no model
size_t last_within_bound(const struct figures *figures);   // in the grid, TUNE_SLOWDOWN
size_t choose_within_bound(const struct figures *figures); // TUNE_SLOWDOWN
