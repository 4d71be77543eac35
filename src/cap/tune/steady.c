#include "cap/tune/meter.h"

#include <math.h>

static const double ABOVE = 1.05; // tolerance of power controllers
static const double AGREES_W = 0.5;

void tune_steady_begin(struct tune_steady *steady)
{
	steady->before_w = (double)NAN;
	steady->above_s = 0;
}

bool tune_steady_is_above(const struct tune_steady *steady, double limit_w, double w)
{
	return w > ABOVE * limit_w && w > ABOVE * steady->least_w;
}

void tune_steady_learn(struct tune_steady *steady, double delay_s)
{
	steady->delay_s = fmax(steady->delay_s, delay_s);
}

bool tune_steady_add(struct tune_steady *steady, const struct tune_stretch_power *stretch, double tolerance)
{
	double sum_w = stretch->sum_w;
	bool agrees = fabs(sum_w - steady->before_w) <= tolerance * fabs(sum_w) + AGREES_W;
	steady->before_w = sum_w;
	if (tune_steady_is_above(steady, stretch->limit_w, stretch->most_w)) {
		steady->above_s = stretch->until_s;
		if (!agrees || stretch->until_s < TUNE_SLOWEST_S)
			return false;
		steady->least_w = stretch->most_w;
		return true;
	}
	tune_steady_learn(steady, steady->above_s);
	steady->above_s = 0;
	return agrees;
}
