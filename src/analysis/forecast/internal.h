/* Internal interfaces of this folder. */
#pragma once

#include "analysis/forecast/forecast.h"

/* One quantity between two points: `amount` of time or energy in `steps` steps after the first `after` steps. */
struct stretch {
	double after, steps, amount;
};

struct outlook {                // forecast of a sum
	double mean, low, high; // a 95 % interval
};

/* rate.c: the sum over the next `steps_to_come` steps. The stretches are consecutive; at least 2 of them. */
struct outlook rate_outlook(const struct stretch *stretches, size_t n, double steps_to_come);

/* pauses.c: stretches that take far longer than the other steps, at regular intervals. */
enum { PAUSES_MOST = 256 };
struct pauses {
	size_t n;
	uint16_t at[PAUSES_MOST]; // indices of stretches
	double every, last;       // steps from one pause to the next; steps before the last pause
	bool is_guess;            // based on a single pause: more may or may not follow
};
// `n` is 0 if there are no regular pauses.
struct pauses pauses_find(const struct stretch *times, size_t n);
// Number of pauses until `all_steps` are done, including one right after the last step.
double pauses_to_come(const struct pauses *pauses, double all_steps);
/* Removes the pauses from one quantity: their stretches become like the others. Returns what the next `to_come` pauses
 * will add. */
struct outlook pauses_take_out(const struct pauses *pauses, struct stretch *stretches, size_t n, double to_come);

/* unseen.c: widens the interval of steps without pauses while only a small part of the program was seen. */
struct outlook unseen_add(const struct outlook *steps, double done, double all_steps);

double stretch_median_rate(const struct stretch *stretches, size_t n); // median amount per step, weighted by steps
