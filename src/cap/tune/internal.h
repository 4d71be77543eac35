/* What a search knows: its limits, its windows, the round it is in. Of cap/tune alone. */
#pragma once

#include "base/arena.h"
#include "base/dice.h"
#include "cap/tune/tune.h"

#include <stdbool.h>

enum {
	TUNE_ROUNDS_MAX = 6,
	TUNE_WINDOWS_MIN = 4 // a limit's `seconds` are divided into so many at least
};

struct tune_limit {
	double limit;
	size_t index;   // what the caller knows it by: candidates come first, then limits in the order they were added
	double used_s;  // measured so far, windows in which nothing was learnt included
	size_t n_tried; // windows asked for and answered
	size_t n_windows; // of them those that count
	bool in_question;
};

struct tuner {
	struct tune_options options;
	struct tune_limit *limits; // owned; descending, [0] is the reference; room for twice the candidates
	size_t n_limits, n_candidates;
	struct tune_window *windows; // owned; those that count, in the order of at_s; `limit` is a place in limits
	size_t n_windows, windows_capacity;
	uint32_t *round; // owned; limits of this round in the order they are measured, room for all limits and one more
	size_t n_round, at;
	size_t n_rounds; // finished
	double progress; // never falls, though limits may be added
	bool is_finished;
	struct dice dice;
};

// Which limits need no further window, at the end of a round: `in_question` is cleared for them.
void tune_judge(struct tuner *tuner);

// Is there time, of what all candidates together may take, to measure one more limit in the rounds to come?
bool tune_has_time_for_another(const struct tuner *tuner);

double tune_time_exponent(enum tune_goal goal); // k of E·T^k

/* Models of the objective against the limit. Limits in parts of the reference, objectives as logarithms of their
 * ratio to the reference's: of order 1, whatever the device and the unit. */

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

/* a·exp(b·x − c) + d·sigmoid(e·x − f) + g: what falls and what rises with the limit, and what does not change. */

// `start` NULL: fixed starting points. As model_fit.
bool seed_model_fit(const struct model_points *points, size_t left_out, const double *start, double *ret_shape);
// False in a static program that was linked without cminpack.
bool seed_model_is_linked(void);
double seed_model_at(const double *shape, double x_low, double x);
size_t seed_model_parameters(const double *shape, double x_low, double ret_parameters[7]);

/* Windows into one figure a limit: the logarithms of energy and time per step with the drift taken off, and how sure
 * they are. The noise is pooled over all limits. */

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

/* What the search came to, in logarithms against the reference, and the limits that may be chosen. */

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

/* How sure the choice and what it promises are. */

/* Draws truths that the windows leave possible: curves of E and of T, as far off the fitted ones as noise and few
 * windows allow. What each has at the chosen limit gives the intervals of saving and slowdown; where each has its
 * own optimum, the range. Fills low and high of the three. -ENOMEM. */
int bootstrap_choice(const struct figures *figures, size_t chosen, uint64_t seed, struct arena *arena,
	struct tune_result *result);

/* Limits between the candidates, beside the best one. */

// Adds limits to be measured, as far as the time that others left reaches. The estimate is of all limits before.
void tune_refine(struct tuner *tuner, const struct estimate *estimate);

/* time.c */
size_t tune_rounds_planned(const struct tuner *tuner);
double tune_window_s(const struct tuner *tuner); // as long as windows are asked for
double tune_expected_s(const struct tuner *tuner, size_t limit); // as long as its next one may last; NaN unknown
double tune_left_s(const struct tuner *tuner, size_t limit);
bool tune_has_time(const struct tuner *tuner, size_t limit);
