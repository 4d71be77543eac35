/* What a forecast is made of. */
#pragma once

#include "analysis/forecast/forecast.h"

/* One quantity between two points: `amount` of time or energy in `steps` steps that came after the first `after` ones. */
struct stretch {
	double after, steps, amount;
};

struct outlook {                // of a sum to come
	double mean, low, high; // a 95 % interval
};

/* rate.c: the sum over the next `steps_to_come` steps. The stretches follow each other; at least 2 of them. */
struct outlook rate_outlook(const struct stretch *stretches, size_t n, double steps_to_come);

/* pauses.c: stretches that take far longer than their steps do elsewhere, and come in a rhythm. */
enum { PAUSES_MOST = 256 };
struct pauses {
	size_t n;
	uint16_t at[PAUSES_MOST]; // indices of stretches
	double every, last;       // steps from one to the next, and before the last one
	bool is_guess;            // there was one: whether more will come can't be known
};
// `n` is 0 where there is no rhythm.
struct pauses pauses_find(const struct stretch *times, size_t n);
// How many come until `all_steps` have been done, one right after the last of them included.
double pauses_to_come(const struct pauses *pauses, double all_steps);
/* Takes the pauses out of one quantity: their stretches become like the others. What `to_come` of them will add. */
struct outlook pauses_take_out(const struct pauses *pauses, struct stretch *stretches, size_t n, double to_come);

/* unseen.c: the interval of steps among which no pause was seen, as wide as it has to be while little of the program was. */
struct outlook unseen_add(const struct outlook *steps, double done, double all_steps);

double stretch_median_rate(const struct stretch *stretches, size_t n); // of amount a step, each step counted
