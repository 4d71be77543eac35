/* Internal interfaces of this folder. */
#pragma once

#include "analysis/forecast/forecast.h"

/* One quantity between two points: `amount` of time or energy in `steps` steps after the first `after` steps. */
struct interval {
	double after, steps, amount;
};

struct estimate {               // forecast of a sum
	double mean, low, high; // a 95 % interval
};

/* rate.c: the sum over the next `steps_to_come` steps. The stretches are consecutive; at least 2 of them. */
struct estimate rate_estimate(const struct interval *intervals, size_t n, double steps_to_come);

/* pauses.c: stretches that take far longer than the other steps, at regular intervals. */
enum { PAUSES_MAX = 256 };
struct pauses {
	size_t n;
	uint16_t at[PAUSES_MAX]; // indices of stretches
	double every, last;      // steps from one pause to the next; steps before the last pause
	bool is_tentative;       // based on a single pause: more may or may not follow
};
// `n` is 0 if there are no regular pauses.
struct pauses pauses_find(const struct interval *times, size_t n);
// Number of pauses until `all_steps` are done, including one right after the last step.
double pauses_to_come(const struct pauses *pauses, double all_steps);
/* Removes the pauses from one quantity: their stretches become like the others. Returns the time or energy that the
 * next `to_come` pauses will add. */
struct estimate pauses_remove(const struct pauses *pauses, struct interval *intervals, size_t n, double to_come);

/* unseen.c: widens the interval of steps without pauses while only a small part of the program was seen. */
struct estimate unseen_add(const struct estimate *steps, double done, double all_steps);

double interval_median_rate(const struct interval *intervals, size_t n); // median amount per step, weighted by steps
