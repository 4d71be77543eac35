#include "fake.h"

#include <math.h>

static double step_mw(const struct fake_power *power, double t_s)
{
	double phase = fmod(t_s, power->period_s) / power->period_s;
	return phase < 1 - power->duty ? power->low_mw : power->high_mw;
}

double fake_power_mw(const struct fake_gpu *gpu, struct fake_bound bound, double t_s)
{
	const struct fake_power *power = &gpu->power;
	double mw = power->mean_mw;
	if (power->shape == SHAPE_SPEED)
		return fake_speed_mw(gpu, bound);
	if (power->shape == SHAPE_STEP)
		mw = step_mw(power, t_s);
	if (power->shape == SHAPE_SINE)
		mw += power->amplitude_mw * sin(2 * M_PI * t_s / power->period_s);
	return fmax(0, fmin(mw, bound.limit_mw));
}

static double step_energy_mj(const struct fake_power *power, double limit_mw, double t_s)
{
	double low_mw = fmin(power->low_mw, limit_mw), high_mw = fmin(power->high_mw, limit_mw);
	double low_s = power->period_s * (1 - power->duty), high_s = power->period_s - low_s;
	double periods = floor(t_s / power->period_s);
	double rest_s = t_s - periods * power->period_s;
	return periods * (low_mw * low_s + high_mw * high_s) + low_mw * fmin(rest_s, low_s) +
		high_mw * fmax(0, rest_s - low_s);
}

/* Integral from phase 0 to `angle` (up to one turn) of the part of a sine of amplitude 1 above `level`, in radians:
 * between asin(level) and pi - asin(level) the sine is above it. */
static double above(double level, double angle)
{
	double from = asin(level);
	if (from < 0)
		from = 0; // below the mean the first crossing is at the end of the turn, see sine_energy_mj
	double until = fmin(angle, M_PI - asin(level));
	if (until <= from)
		return 0;
	return cos(from) - cos(until) - level * (until - from);
}

// A limit below the mean is crossed upwards at 2 pi + asin(level), near the end of the turn.
static double above_turn(double level, double angle)
{
	double late = 2 * M_PI + asin(level);
	double sum = above(level, angle);
	if (level < 0 && angle > late)
		sum += cos(late) - cos(angle) - level * (angle - late);
	return sum;
}

static double sine_energy_mj(const struct fake_power *power, double limit_mw, double t_s)
{
	double omega = 2 * M_PI / power->period_s;
	double level = (limit_mw - power->mean_mw) / power->amplitude_mw;
	double free_mj = power->mean_mw * t_s + power->amplitude_mw / omega * (1 - cos(omega * t_s));
	if (level >= 1)
		return free_mj;
	if (level <= -1)
		return limit_mw * t_s;
	double periods = floor(t_s / power->period_s);
	double angle = omega * (t_s - periods * power->period_s);
	double excess = periods * above_turn(level, 2 * M_PI) + above_turn(level, angle);
	return free_mj - power->amplitude_mw / omega * excess;
}

double fake_energy_mj(const struct fake_gpu *gpu, struct fake_bound bound, double t_s)
{
	const struct fake_power *power = &gpu->power;
	double limit_mw = bound.limit_mw;
	if (power->shape == SHAPE_SPEED)
		return fake_speed_mw(gpu, bound) * t_s;
	if (power->shape == SHAPE_STEP)
		return step_energy_mj(power, limit_mw, t_s);
	if (power->shape == SHAPE_SINE && power->amplitude_mw > 0)
		return sine_energy_mj(power, limit_mw, t_s);
	return fmin(power->mean_mw, limit_mw) * t_s;
}
