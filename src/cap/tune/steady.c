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
	return w > ABOVE * limit_w && w > ABOVE * steady->min_w;
}

void tune_steady_record(struct tune_steady *steady, double delay_s)
{
	steady->delay_s = fmax(steady->delay_s, delay_s);
}

bool tune_steady_add(struct tune_steady *steady, const struct tune_interval_power *interval, double tolerance)
{
	double sum_w = interval->sum_w;
	bool agrees = fabs(sum_w - steady->before_w) <= tolerance * fabs(sum_w) + AGREES_W;
	steady->before_w = sum_w;
	if (tune_steady_is_above(steady, interval->limit_w, interval->max_w)) {
		steady->above_s = interval->until_s;
		if (!agrees || interval->until_s < TUNE_SLOWEST_S)
			return false;
		steady->min_w = interval->max_w;
		return true;
	}
	tune_steady_record(steady, steady->above_s);
	steady->above_s = 0;
	return agrees;
}
