/* What the steps so far can't tell because it has not happened yet. Steady steps have a narrow interval as soon as there are
 * some; that the first validation is to come, or that the program still warms up, is in none of them. So a chance is given to
 * both beforehand. It falls with every step in which they could have shown, and is nothing to speak of by half time. The
 * figures are judgement; the simulation (tests/unit/analysis/forecast.c) says what comes of them. */
#include "analysis/forecast/parts.h"

#include "base/util.h"

static const double TAIL = 0.025; // on either side of a 95 % interval

// Every second program pauses in a rhythm; the first pause comes after a ninth of the steps on average: 8 (1 - x)^7.
static const double PAUSES_PRIOR = 0.5, PAUSES_POWER = 8;
// How much longer the steps take with their pauses, on average; exponential.
static const double PAUSES_SHARE = 0.15;
// Three in ten begin slowly; half of those are through after so many steps.
static const double WARM_UP_PRIOR = 0.3, WARM_UP_STEPS = 10;
// The logarithm of how much slower that is, on average; exponential.
static const double WARM_UP_LOG = 0.7;

// What an exponential amount that is there with this chance reaches beyond the tail.
static double reach(double chance, double mean)
{
	return chance > TAIL ? mean * log(chance / TAIL) : 0;
}

struct outlook unseen_add(const struct outlook *steps, double done, double all_steps)
{
	double early = pow(fmax(1 - done / all_steps, 0), PAUSES_POWER);
	double longer = reach(PAUSES_PRIOR * early, PAUSES_SHARE);
	double faster = 1 - exp(-reach(WARM_UP_PRIOR * early / (1 + done / WARM_UP_STEPS), WARM_UP_LOG));
	return (struct outlook){
		.mean = steps->mean,
		.low = fmax(steps->mean - hypot(steps->mean - steps->low, faster * steps->mean), 0),
		.high = steps->mean + hypot(steps->high - steps->mean, longer * steps->mean),
	};
}
