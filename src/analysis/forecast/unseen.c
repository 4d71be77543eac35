/* Uncertainty from events that have not happened yet. Steady steps soon have a narrow interval, which does not include
 * that the first validation is still to come, or that the program is still warming up. Both therefore have a prior
 * probability. It falls with every step in which they could have appeared, and is negligible by half time. The figures
 * are judgement; the simulation (tests/unit/analysis/forecast.c) shows their effect. */
#include "analysis/forecast/internal.h"

#include "base/util.h"

static const double TAIL = 0.025; // on each side of a 95 % interval

// Half of all programs pause regularly; the first pause comes after a ninth of the steps on average: density 8 (1 -
// x)^7.
static const double PAUSES_PRIOR = 0.5, PAUSES_POWER = 8;
// Mean relative time that pauses add to the steps; exponential.
static const double PAUSES_SHARE = 0.15;
// Three in ten programs have a slow start; half of those end it within this number of steps.
static const double WARM_UP_PRIOR = 0.3, WARM_UP_STEPS = 10;
// Mean logarithm of the slow-down; exponential.
static const double WARM_UP_LOG = 0.7;

// How far an exponential amount that is present with this probability extends beyond the tail.
static double reach(double chance, double mean)
{
	return chance > TAIL ? mean * log(chance / TAIL) : 0;
}

struct estimate unseen_add(const struct estimate *steps, double done, double all_steps)
{
	double early = pow(fmax(1 - done / all_steps, 0), PAUSES_POWER);
	double longer = reach(PAUSES_PRIOR * early, PAUSES_SHARE);
	double faster = 1 - exp(-reach(WARM_UP_PRIOR * early / (1 + done / WARM_UP_STEPS), WARM_UP_LOG));
	return (struct estimate){
		.mean = steps->mean,
		.low = fmax(steps->mean - hypot(steps->mean - steps->low, faster * steps->mean), 0),
		.high = steps->mean + hypot(steps->high - steps->mean, longer * steps->mean),
	};
}
