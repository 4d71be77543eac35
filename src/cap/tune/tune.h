/* The search for the limit that saves most: which one to measure next, and what the measurements say. Pure: no
 * device, no clock, no file; the same windows in, the same answer out, on every machine.
 *
 * A window is a stretch of the program's work under one limit, from the end of one step to the end of another. The
 * caller measures windows as `tuner_next` asks for them and hands them back; then tuner_conclude. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tune_goal {
	TUNE_ED2P,    // E·T² of a step: J·s²
	TUNE_EDP,     // E·T of a step: J·s
	TUNE_ENERGY,  // E of a step: J
	TUNE_SLOWDOWN // least E of a step with T at most (1 + slowdown_percent/100) of that at the reference limit: J
};
extern const char *const tune_goal_names[];       // NULL-terminated
const char *tune_goal_name(enum tune_goal goal);  // "ed2p", "edp", "energy", "slowdown"
const char *tune_goal_title(enum tune_goal goal); // what is made small, for people: "ED²P", "EDP", "energy"
const char *tune_goal_unit(enum tune_goal goal);

struct tune_options {
	enum tune_goal goal;
	double slowdown_percent;                   // TUNE_SLOWDOWN
	double seconds;                            // at most so much measured time a limit, all its windows together
	uint64_t seed;                             // of the order of limits and of the bootstrap
	bool whole_runs;                           // a window is one run of the command: `seconds` does not cut it
	bool adds_limits;                          // beside the best one, where time is left
	double (*taken)(void *data, double limit); // what the device makes of a limit; NULL: it takes any
	void *data;
};

/* Candidate limits, descending, the first is the reference: n of them from `from_percent` of default to default,
 * evenly, those below min moved up to min, doubles dropped. At least 2, else -ERANGE. ret_values has room for n. */
int tune_candidates(double min, double max, double default_, double from_percent, size_t n, double *ret_values,
	size_t *ret_n);

struct tune_window {
	size_t limit;          // its index, as tuner_next said it
	double steps;          // that ended in it; > 0
	double energy_j;       // of the limited devices, over time_s
	double energy_error_j; // what may differ from window to window (a gain that all have cancels out); NaN unknown
	double time_s;
	double at_s; // its middle, since the search began: drift is over this
};

struct tuner; // opaque

/* `limits` positive and descending, at least 2, `seconds` positive, a slowdown not negative: else -EINVAL. -ENOMEM.
 * -ENOSYS: a static program that was linked without cminpack. */
int tuner_new(const struct tune_options *options, const double *limits, size_t n, struct tuner **ret_tuner);
void tuner_free(struct tuner *tuner);

/* The next window to be measured: which limit, and how long (s, to the end of the step that is under way then; 0 for
 * whole runs: one run). False: enough is known. Rounds: every limit that is still in question once a round, in
 * random order, with the reference before and after (A B C D A), so that drift can be told and taken off. With
 * `adds_limits` the time of limits that are out of question goes to new ones beside the best, which get the indices
 * after the candidates'. Asked again without an answer it says the same: a window that could not be measured is answered too, with steps 0 and
 * the time it took; it is not used, and the search goes on. */
bool tuner_next(struct tuner *tuner, size_t *ret_limit, double *ret_seconds);
double tuner_limit(const struct tuner *tuner, size_t index); // W or MHz; NaN: there is none
void tuner_add(struct tuner *tuner, const struct tune_window *window);
double tuner_progress(const struct tuner *tuner);     // 0 to 1: of the time that the search may yet take at most
double tuner_seconds_left(const struct tuner *tuner); // measured time still to come, at most, if no limit
						      // is added; settling is the caller's. Whole runs:
						      // NaN before the first one

struct tune_interval {
	double value, low, high; // 95 %; NaN unknown
};

struct tune_limit_result {
	double limit; // W or MHz
	size_t n_windows;
	double steps, energy_j, time_s;                          // sums over its windows, as measured
	struct tune_interval energy_per_step_j, time_per_step_s; // drift taken off
	struct tune_interval objective;                          // per step
	bool is_allowed;                                         // TUNE_SLOWDOWN: within the bound
	bool is_added;                                           // beside the best one; no candidate of the caller's
};

enum tune_model {
	TUNE_NO_MODEL,     // the best measured limit
	TUNE_SEED_MODEL,   // a·exp(b·x − c) + d·sigmoid(e·x − f) + g
	TUNE_CONVEX_MODEL, // log objective = p0 + p1·log x + p2·(log x)²
	TUNE_SPLINE_MODEL  // smooth curves of E and of T, no parameters
};
extern const char *const tune_model_names[];        // NULL-terminated
const char *tune_model_name(enum tune_model model); // "none", "exp+sigmoid", "convex", "spline"

struct tune_result {
	enum tune_goal goal;
	double slowdown_percent;
	struct tune_limit_result *limits; // descending; in the arena
	size_t n_limits;
	double chosen; // inside the limits; where a model was taken it may lie between candidates
	struct tune_interval saving_percent,
		slowdown;                  // of energy and time per step, against the reference; slowdown in %
	struct tune_interval chosen_range; // where the optimum may lie as well
	enum tune_model model;
	double parameters[7]; // x is limit/reference, the objective in parts of the reference's
	size_t n_parameters;
	double residual_percent, noise_percent; // of the model; of the windows among themselves
	double drift_percent;                   // of the reference's objective, from first to last
	size_t n_curve;                         // the model's objective at curve_x, for pictures; 0: none
	double *curve_x, *curve_y;              // in the arena
	char note[300]; // why no model was taken, that nothing differs from the reference, …; "" none
};

// -ENODATA: no window of the reference, or of no other limit.
int tuner_conclude(const struct tuner *tuner, struct arena *arena, struct tune_result *ret_result);
