/* How long a program that tells its steps will take until the last of them, and what it will use until then: from the times
 * at which steps ended, and the energy that had been used by then. Pure: no clock, no file. docs/progress.md is the manual.
 *
 * What it assumes: the steps to come are like those that were. Their level may wander as it did so far, or go on as a line if
 * it lies on one; a slow beginning that is clearly over is left out; pauses that come every so many steps go on coming. For
 * what has not happened yet, the first validation above all, the interval has room while little was seen (unseen.c); a slower
 * last phase, or what the program does after its last step, can't be known. The interval holds the rest 19 times in 20 in
 * simulation (tests/unit/analysis/forecast.c); the error of the meter is not in it: it is about what the report will say, not
 * about what the truth is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORECAST_POINTS = 512, FORECAST_LEAST_STEPS = 4 };

struct forecast_point { // all since the start: so many steps had ended, the last of them now
	int64_t steps;
	double time_s, energy_j; // energy NaN: unknown
};

/* What there was so far, in fixed memory: when it is full, neighbours become one. Begin with {0}. */
struct forecast_log {
	struct forecast_point points[FORECAST_POINTS]; // of more and more steps
	size_t n;
	int64_t stride; // points that are nearer than so many steps become one
};
void forecast_add(struct forecast_log *log, struct forecast_point point); // of no more steps than before: left out

struct forecast_figure {        // from now to the end of the last step
	double left, low, high; // a 95 % interval
};

struct forecast {
	struct forecast_figure time_s, energy_j; // NaN: unknown
	int64_t pause_every;                     // steps, of pauses that are foreseen; 0: none are
};

/* `now`: time and energy at this moment, and steps as far as is known. All NaN while fewer than FORECAST_LEAST_STEPS have
 * ended, or when there were as many as there are to be already. */
struct forecast forecast_make(const struct forecast_log *log, int64_t all_steps, struct forecast_point now);
