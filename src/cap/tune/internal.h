/* State of a search: its limits, its windows and the current round. Private to cap/tune. */
#pragma once

#include "base/arena.h"
#include "base/rng.h"
#include "cap/tune/tune.h"

#include <stdbool.h>

enum {
	TUNE_ROUNDS_MAX = 6,
	TUNE_WINDOWS_MIN = 4 // a limit's `seconds` are divided into at least this many windows
};

struct tune_limit {
	double limit;
	size_t index;   // index used by the caller: candidates first, then added limits in order of addition
	double used_s;  // measured time, s, including windows without a result
	size_t n_tried; // windows requested and answered
	size_t n_windows; // valid windows among them
	bool in_question;
};

struct tuner {
	struct tune_options options;
	struct tune_limit *limits; // owned; descending, [0] is the reference; room for twice the candidates
	size_t n_limits, n_candidates;
	struct tune_window *windows; // owned; valid windows in the order of at_s; `limit` is an index into limits
	size_t n_windows, windows_capacity;
	uint32_t *round; // owned; limits of this round in measuring order; room for all limits and one more
	size_t n_round, at;
	size_t n_rounds; // number of finished rounds
	double progress; // never decreases, although limits may be added
	bool is_finished;
	struct rng rng;
};

// At the end of a round, clears `in_question` of the limits that need no further window.
void tune_prune(struct tuner *tuner);

// Whether the total time for all candidates allows measuring one more limit in the remaining rounds.
bool tune_has_time_for_another(const struct tuner *tuner);

double tune_time_exponent(enum tune_goal goal); // exponent k of the objective E·T^k

/* Models of the objective over the limit. Limits are relative to the reference and objectives are logs of the ratio to
 * the reference's, so values are of order 1 for any device and unit. */

enum { MODEL_SHAPE = 6 }; // number of fitted parameters: in the seed model, a and c are redundant

struct model_points {
	size_t n;
	const double *x; // limits relative to the reference
	const double *y; // logs of the objective
	const double *s; // tolerated deviation of a point from the curve: noise, plus a part that grows with the
	                 // distance from the best value
	double x_low;    // lowest limit
};

struct model {
	enum tune_model kind;
	double shape[MODEL_SHAPE];
	double x_low;
};

/* Fits to all points except `left_out` (n: to all). `start`: a similar fit to start from; NULL: fixed starting points.
 * False: the fit failed. */
bool model_fit(enum tune_model kind, const struct model_points *points, size_t left_out, const struct model *start,
	struct model *ret_model);
double model_at(const struct model *model, double x);
double model_loss(const struct model *model, const struct model_points *points); // mean square residual in units of `s`

// Leave-one-out cross-validation: mean square prediction error in units of `s`. NaN: unknown.
double model_cross_validate(const struct model *model, const struct model_points *points);

size_t model_parameters(const struct model *model, double ret_parameters[7]); // documented parameters

/* a·exp(b·x − c) + d·sigmoid(e·x − f) + g: a decreasing part, an increasing part and a constant. */

// `start` NULL: fixed starting points. As model_fit.
bool seed_model_fit(const struct model_points *points, size_t left_out, const double *start, double *ret_shape);
// False in a statically linked program without cminpack.
bool seed_model_is_linked(void);
double seed_model_at(const double *shape, double x_low, double x);
size_t seed_model_parameters(const double *shape, double x_low, double ret_parameters[7]);

/* Reduces the windows to one estimate per limit: logs of energy and time per step without the drift, and their
 * uncertainty. The noise is pooled over all limits. */

enum tune_quantity { TUNE_E, TUNE_T, TUNE_QUANTITIES };

struct estimate {
	size_t n;                                       // number of limits
	double *log[TUNE_QUANTITIES];                   // of J and s per step; NaN: no window of this limit
	double *shape;                                  // n × n; covariance of the logs is shape × noise
	double noise[TUNE_QUANTITIES][TUNE_QUANTITIES]; // covariance of one window's logs; NaN: unknown
	size_t degrees;                                 // degrees of freedom of the noise
	double drift[TUNE_QUANTITIES];                  // change of the logs from the first window to the last
	double level[TUNE_QUANTITIES];                  // mean of all windows' logs
};

/* `windows` in the order of at_s, all valid. Allocates in the arena. -ENOMEM. */
int estimate_make(const struct tune_window *windows, size_t n_windows, size_t n_limits, struct arena *arena,
	struct estimate *ret_estimate);

// log(E·T^k) of a limit; the variance of that of one window; and of the difference between two limits (i == j: of one
// limit).
double estimate_log(const struct estimate *estimate, size_t limit, double time_exponent);
double estimate_noise(const struct estimate *estimate, double time_exponent);
double estimate_shape_of_difference(const struct estimate *estimate, size_t i, size_t j);

double t_quantile(size_t degrees); // 97.5 %: half the width of a 95 % interval in standard errors; NaN for 0 degrees

/* Result of the search, as logs relative to the reference, and the limits that may be chosen. */

struct figures {
	enum tune_goal goal;
	double time_exponent, bound; // bound: maximum of log T, for TUNE_SLOWDOWN
	size_t n;                    // measured limits, descending; [0] is the reference
	double *limit, *x;           // x: relative to the reference
	double *log[TUNE_QUANTITIES];
	double *shape; // n × n
	double noise[TUNE_QUANTITIES][TUNE_QUANTITIES];
	double noise_of_objective;
	size_t degrees;
	double *y, *s; // objective, and its tolerated deviation from the curve, for models

	// Limits that may be chosen: whole numbers and the measured ones, descending; [0] is the reference.
	size_t n_grid;
	double *grid;
	size_t *grid_of;                  // n: grid index of each measured limit
	double *weights[TUNE_QUANTITIES]; // n_grid × n: weights × log gives smoothed curves of log E and log T
	double *exact[TUNE_QUANTITIES];   // the same for interpolating curves
	double *uncertainty
		[TUNE_QUANTITIES]; // n × n: covariance of the true values about the curve at the measured limits
};

// -ENOMEM. `limits` has the n limits of the estimate.
int figures_make(const struct estimate *estimate, const double *limits, enum tune_goal goal, double slowdown_percent,
	struct arena *arena, struct figures *ret_figures);

struct model_points figures_points(const struct figures *figures);
double figures_curve(const struct figures *figures, enum tune_quantity quantity, size_t at); // log, from the smooth curve

// Fills the weights of the curves. -ENOMEM.
int curves_make(struct figures *figures, struct arena *arena);

struct choice {
	size_t at;          // grid index
	struct model model; // kind TUNE_NO_MODEL: the best measured limit
	double residual;    // standard deviation of the log about the model; NaN: none
	const char *why;    // text for the note; "" none
};

struct choice choose(const struct figures *figures, struct arena *arena);
double choice_curve(const struct figures *figures, const struct choice *choice,
	size_t at);                                        // log objective; NaN: no model
size_t last_within_bound(const struct figures *figures);   // grid index, for TUNE_SLOWDOWN
size_t choose_within_bound(const struct figures *figures); // grid index, for TUNE_SLOWDOWN

/* Uncertainty of the chosen limit and of its predicted effect. */

/* Draws curves of E and T that are compatible with the windows: their distance from the fitted curves reflects noise
 * and the number of windows. Their values at the chosen limit give the intervals of saving and slowdown; their optima
 * give the range of the limit. Fills in low and high of all three. -ENOMEM. */
int bootstrap_choice(const struct figures *figures, size_t chosen, uint64_t seed, struct arena *arena,
	struct tune_result *result);

/* Additional limits between the candidates, next to the best one. */

// Adds limits to be measured, as far as unused time allows. The estimate covers all existing limits.
void tune_refine(struct tuner *tuner, const struct estimate *estimate);

/* Implemented in time.c. */
size_t tune_rounds_planned(const struct tuner *tuner);
double tune_window_s(const struct tuner *tuner); // requested duration of a window, s
double tune_expected_s(const struct tuner *tuner, size_t limit); // expected duration of the next window, s; NaN: unknown
double tune_left_s(const struct tuner *tuner, size_t limit);
bool tune_has_time(const struct tuner *tuner, size_t limit);
