/* Forecast of the remaining time and energy of a program that reports its steps, from the times at which steps ended
 * and the energy used by then. Pure: no clock, no file. docs/progress.md is the manual.
 *
 * Assumptions: future steps are like past ones. Their level can continue to wander as before, or follow a line if it
 * lies on one. A slow start that is clearly over is left out. Periodic pauses continue. The interval is wider while
 * little of the program was seen, to allow for events that have not happened yet, above all the first validation
 * (unseen.c). A slower last phase, or work after the last step, can't be predicted. In simulation the interval contains
 * the remainder 19 times in 20 (tests/unit/analysis/forecast.c). It excludes the error of the meter: it predicts the
 * figure of the report, not the true value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORECAST_POINTS = 512, FORECAST_MIN_STEPS = 4 };

struct forecast_point { // cumulative since the start: `steps` steps had ended, the last of them at time_s
	int64_t steps;
	double time_s, energy_j; // energy NaN: unknown
};

/* History in fixed memory: when it is full, neighbouring points are merged. Begin with {0}. */
struct forecast_log {
	struct forecast_point points[FORECAST_POINTS]; // ascending in steps
	size_t n;
	int64_t stride; // points closer together than this number of steps are merged
};
void forecast_add(struct forecast_log *log, struct forecast_point point); // ignored if it has no more steps than the last point

struct forecast_figure {        // remaining amount, from now to the end of the last step
	double left, low, high; // a 95 % interval
};

struct forecast {
	struct forecast_figure time_s, energy_j; // NaN: unknown
	int64_t pause_every;                     // period of the expected pauses in steps; 0: none
};

/* `now`: current time and energy, and steps as far as known. All NaN while fewer than FORECAST_MIN_STEPS have ended,
 * or when all steps have ended. */
struct forecast forecast_make(const struct forecast_log *log, int64_t all_steps, struct forecast_point now);
