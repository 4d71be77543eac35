/* A busy card. Clocks are fractions of the highest:
 *
 *	power(clock) = idle + (full - idle) * clock^exponent
 *	speed(clock) = 1 / ((1 - memory_share) / clock + memory_share)
 *
 * and the clock is the highest at which power stays within the limit, not above a locked clock, never below the card's
 * lowest. tests/e2e/gpu_card.py has the same formulas in Python. */
#include "fake.h"

#include <math.h>

double fake_clock(const struct fake_gpu *gpu, struct fake_bound bound)
{
	const struct fake_speed *speed = &gpu->power.speed;
	double highest_mhz = gpu->max_sm_clock_mhz;
	if (bound.rests)
		return gpu->clock_min_mhz / highest_mhz;
	double share = (bound.limit_mw - speed->idle_mw) / (speed->full_mw - speed->idle_mw);
	double mhz = highest_mhz * pow(fmin(1, fmax(0, share)), 1 / speed->exponent);
	mhz = fmin(mhz, bound.clock_mhz);
	if (gpu->clock_stairs) {
		double steps = floor((mhz - gpu->clock_min_mhz) / gpu->clock_step_mhz + 1e-9);
		mhz = gpu->clock_min_mhz + steps * gpu->clock_step_mhz;
	}
	return fmax(mhz, gpu->clock_min_mhz) / highest_mhz;
}

double fake_speed(const struct fake_gpu *gpu, struct fake_bound bound)
{
	double memory_share = gpu->power.speed.memory_share;
	return 1 / ((1 - memory_share) / fake_clock(gpu, bound) + memory_share);
}

double fake_speed_mw(const struct fake_gpu *gpu, struct fake_bound bound)
{
	const struct fake_speed *speed = &gpu->power.speed;
	return speed->idle_mw + (speed->full_mw - speed->idle_mw) * pow(fake_clock(gpu, bound), speed->exponent);
}
