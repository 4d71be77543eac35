/* Search for the limit that saves most: selects the next limit to measure and evaluates the measurements. Without side
 * effects (no device, clock or file): the same windows give the same result on every machine.
 *
 * A window is a part of the program's work under one limit, from the end of one step to the end of another. The caller
 * measures the windows that `tuner_next` requests and passes them back, and finally calls tuner_conclude. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tune_goal {
	TUNE_ED2P,    // E·T² per step, J·s²
	TUNE_EDP,     // E·T per step, J·s
	TUNE_ENERGY,  // E per step, J
	TUNE_SLOWDOWN // minimum E per step, J, with T at most (1 + slowdown_percent/100) times that at the reference limit
};
extern const char *const tune_goal_names[];       // NULL-terminated
const char *tune_goal_name(enum tune_goal goal);  // "ed2p", "edp", "energy", "slowdown"
const char *tune_goal_title(enum tune_goal goal); // name of the objective for users: "ED²P", "EDP", "energy"
const char *tune_goal_unit(enum tune_goal goal);

struct tune_options {
	enum tune_goal goal;
	double slowdown_percent;                   // for TUNE_SLOWDOWN
	double seconds;                            // maximum measured time per limit over all its windows, s
	uint64_t seed;                             // of the order of limits and the bootstrap
	bool whole_runs;                           // a window is one complete run of the command, not cut by `seconds`
	bool adds_limits;                          // adds limits next to the best one if time is left
	double (*taken)(void *data, double limit); // rounds a limit to a value that the device accepts; NULL: all
	                                           // values are accepted
	void *data;
};

/* Candidate limits, descending, the first is the reference: n evenly spaced values from default to `from_percent` of
 * default. Values below min become min; duplicates are dropped. At least 2, else -ERANGE. ret_values has room for n. */
int tune_candidates(double min, double max, double default_, double from_percent, size_t n, double *ret_values,
	size_t *ret_n);

struct tune_window {
	size_t limit;          // index returned by tuner_next
	double steps;          // number of steps that ended in the window; > 0
	double energy_j;       // energy of the limited devices over time_s
	double energy_error_j; // error that varies between windows (a common gain error cancels out); NaN: unknown
	double time_s;
	double at_s; // middle of the window, s since the search began: time axis of the drift
};

struct tuner; // opaque

/* `limits` must be positive, descending and at least 2, `seconds` positive and the slowdown not negative: else -EINVAL.
 * -ENOMEM. -ENOSYS: a statically linked program without cminpack. */
int tuner_new(const struct tune_options *options, const double *limits, size_t n, struct tuner **ret_tuner);
void tuner_free(struct tuner *tuner);

/* Returns the next window to measure: the limit and the duration (s, extended to the end of the running step; 0 for
 * whole runs: one run). False: the search is finished. Each round measures every limit still in question once, in
 * random order, with the reference before and after (A B C D A), so that drift can be estimated and removed. With
 * `adds_limits`, the time of excluded limits goes to new ones next to the best; their indices follow the candidates'.
 * Repeated calls without an answer return the same window. Answer a window that could not be measured with steps 0 and
 * the time it took; it is not used, and the search continues. */
bool tuner_next(struct tuner *tuner, size_t *ret_limit, double *ret_seconds);
double tuner_limit(const struct tuner *tuner, size_t index); // W or MHz; NaN: no such limit
void tuner_add(struct tuner *tuner, const struct tune_window *window);
double tuner_progress(const struct tuner *tuner);     // 0 to 1: part of the maximum duration of the search
double tuner_seconds_left(const struct tuner *tuner); // maximum measured time still to come, if no limit is added;
                                                      // excludes the caller's waits for steady power. Whole runs: NaN
                                                      // before the first run

struct tune_interval {
	double value, low, high; // 95 % interval; NaN: unknown
};

struct tune_limit_result {
	double limit; // W or MHz
	size_t n_windows;
	double steps, energy_j, time_s;                          // sums over the limit's windows, as measured
	struct tune_interval energy_per_step_j, time_per_step_s; // drift removed
	struct tune_interval objective;                          // per step
	bool is_allowed;                                         // TUNE_SLOWDOWN: within the bound
	bool is_added;                                           // added next to the best one; not a candidate of the caller
};

enum tune_model {
	TUNE_NO_MODEL,     // the best measured limit
	TUNE_SEED_MODEL,   // a·exp(b·x − c) + d·sigmoid(e·x − f) + g
	TUNE_CONVEX_MODEL, // log objective = p0 + p1·log x + p2·(log x)²
	TUNE_SPLINE_MODEL  // smooth curves of E and T, without parameters
};
extern const char *const tune_model_names[];        // NULL-terminated
const char *tune_model_name(enum tune_model model); // "none", "exp+sigmoid", "convex", "spline"

struct tune_result {
	enum tune_goal goal;
	double slowdown_percent;
	struct tune_limit_result *limits; // descending; in the arena
	size_t n_limits;
	double chosen; // within the range of the limits; may lie between candidates if a model was used
	struct tune_interval saving_percent,
		slowdown;                  // of energy and time per step, relative to the reference; slowdown in %
	struct tune_interval chosen_range; // confidence range of the optimum
	enum tune_model model;
	double parameters[7]; // x is limit/reference; the objective is relative to the reference's
	size_t n_parameters;
	double residual_percent, noise_percent; // residual_percent: of the model; noise_percent: of the windows
	double drift_percent;                   // change of the reference's objective from first to last
	size_t n_curve;                         // number of points of the model's objective over curve_x, for charts; 0: none
	double *curve_x, *curve_y;              // in the arena
	char note[300]; // reason why no model was used, that nothing differs from the reference, …; "" none
};

// -ENODATA: no window of the reference, or no window of any other limit.
int tuner_conclude(const struct tuner *tuner, struct arena *arena, struct tune_result *ret_result);
