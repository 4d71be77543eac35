/* Simulated cards for the tuner: a limit determines a clock, a clock determines power and step time, so the true
 * optimum is known. Windows have noise, drift and whole steps. */
#pragma once

#include "base/rng.h"
#include "cap/tune/tune.h"

#include <math.h>
#include <stddef.h>

/* The clock is a fraction of the highest one. Power is idle_w + (busy_w − idle_w)·clock·volt²; volt falls by
 * volt_slope per unit of clock down to volt_floor. The step time is the longer of memory and compute/clock, rounded
 * at the knee: (memory^knee + (compute/clock)^knee)^(1/knee); knee 1 is their sum. */
struct card {
	const char *teaches;
	double default_w, min_w, idle_w, busy_w;
	double volt_slope, volt_floor;
	double memory, knee;
	double clock_min, clock_step; // step 0: any clock
	double step_s;                // at the highest clock
	// Required share of good results in searches for least energy with a bound on time, where energy is steep at
	// the bound and noise of the time decides; 0: as for other objectives
	double slowdown_share;
};

static const struct card cards[] = {
	{"compute-bound, needs all of its limit", 250, 100, 30, 260, 0.6, 0.6, 0.05, 1, 0.1, 0, 0.2},
	{"compute-bound, wants more than its limit", 300, 100, 40, 390, 0.7, 0.5, 0, 1, 0.1, 0, 0.1},
	{"half memory, half compute", 350, 100, 50, 330, 0.6, 0.6, 0.5, 1, 0.1, 0, 0.3, .slowdown_share = 0.84},
	{"memory-bound with a sharp knee", 300, 100, 45, 290, 0.6, 0.6, 1, 8, 0.1, 0, 0.25, .slowdown_share = 0.77},
	{"memory-bound, draws half of its limit: flat above", 300, 100, 50, 150, 0.5, 0.6, 0.7, 1, 0.1, 0, 0.5},
	{"draws less than the lowest limit: all limits are equal", 300, 100, 50, 80, 0.5, 0.6, 0.5, 1, 0.1, 0, 0.2},
	{"high idle power: low clocks cost energy", 400, 100, 150, 400, 0.6, 0.6, 0.1, 1, 0.1, 0, 0.2},
	{"low idle power: low clocks save energy", 400, 100, 10, 400, 0.8, 0.4, 0.1, 1, 0.1, 0, 0.2},
	{"cubic: voltage follows the clock over the whole range", 250, 75, 20, 250, 1, 0, 0.2, 1, 0.1, 0, 0.2},
	{"voltage reaches its floor early: linear", 250, 75, 30, 250, 0.3, 0.85, 0.3, 1, 0.1, 0, 0.2},
	{"discrete clocks, fine steps", 350, 100, 55, 340, 0.6, 0.6, 0.4, 1, 0.1, 0.0125, 0.2, .slowdown_share = 0.82},
	{"discrete clocks, coarse steps", 350, 100, 55, 340, 0.6, 0.6, 0.4, 1, 0.1, 0.04, 0.2},
	{"lowest limit is 60 % of the default", 250, 150, 40, 250, 0.7, 0.5, 0.6, 2, 0.1, 0, 0.2},
	{"lowest limit is 80 % of the default", 125, 100, 25, 130, 0.6, 0.6, 0.3, 1, 0.1, 0, 0.2},
	{"narrow clock range: duty cycling below it", 300, 90, 60, 300, 0.6, 0.6, 0.3, 1, 0.55, 0, 0.2},
	{"optimum at the lowest limit", 300, 150, 5, 310, 1, 0.2, 0.85, 1, 0.1, 0, 0.2, .slowdown_share = 0.79},
	{"optimum at the default", 300, 100, 140, 330, 0.2, 0.85, 0, 1, 0.1, 0, 0.2},
	{"large card of 700 W", 700, 200, 80, 680, 0.65, 0.55, 0.35, 1, 0.15, 0.0075, 0.4},
	{"small card of 70 W", 70, 30, 9, 68, 0.6, 0.6, 0.4, 1, 0.2, 0, 0.05, .slowdown_share = 0.88},
	{"CPU package of 125 W", 125, 12.5, 20, 140, 0.7, 0.5, 0.25, 2, 0.2, 0.02, 1},
	{"steps as long as windows", 400, 100, 60, 380, 0.6, 0.6, 0.45, 1, 0.1, 0, 3.1, .slowdown_share = 0.81},
	{"knee in the middle", 450, 100, 60, 430, 0.7, 0.5, 0.9, 4, 0.1, 0.01, 0.3},
	{"knee near the top", 450, 100, 60, 470, 0.7, 0.5, 0.6, 4, 0.1, 0.01, 0.3},
	{"low idle power, very steep curve", 200, 60, 5, 210, 0.9, 0.3, 0, 1, 0.1, 0, 0.15},
};

struct truth {
	double energy_j, time_s; // of a step
};

static inline double card_volt(const struct card *card, double clock)
{
	return fmax(1 - card->volt_slope * (1 - clock), card->volt_floor);
}

static inline double card_power(const struct card *card, double clock)
{
	double volt = card_volt(card, clock);
	return card->idle_w + (card->busy_w - card->idle_w) * clock * volt * volt;
}

static inline double card_time(const struct card *card, double clock)
{
	double compute = card->knee > 4 ? 0.8 : 1 - card->memory * (card->knee <= 1);
	double sum = pow(card->memory, card->knee) + pow(compute / clock, card->knee);
	return card->step_s * pow(sum, 1 / card->knee);
}

static inline struct truth card_at(const struct card *card, double limit_w)
{
	double low = card->clock_min, high = 1;
	if (card_power(card, low) > limit_w) { // duty cycling: the fraction of the lowest clock that the limit allows
		double min_w = card_power(card, low);
		double duty = fmax((limit_w - card->idle_w) / (min_w - card->idle_w), 0.05);
		double time_s = card_time(card, low) / duty;
		return (struct truth){time_s * fmax(limit_w, card->idle_w), time_s};
	}
	if (card_power(card, high) > limit_w)
		for (int i = 0; i < 60; i++) {
			double middle = (low + high) / 2;
			*(card_power(card, middle) > limit_w ? &high : &low) = middle;
		}
	else
		low = 1;
	if (card->clock_step > 0)
		low = fmax(floor(low / card->clock_step + 1e-9) * card->clock_step, card->clock_min);
	double time_s = card_time(card, low);
	return (struct truth){time_s * card_power(card, low), time_s};
}

static inline double dice_uniform(struct rng *rng)
{
	return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

static inline double dice_normal(struct rng *rng)
{
	double radius = sqrt(-2 * log(dice_uniform(rng)));
	return radius * cos(2 * M_PI * dice_uniform(rng));
}

struct weather {
	double noise;    // of time and of energy of a window, each
	double drift;    // of energy over the search, half as much of time
	double search_s; // approximately
	double phase;    // of the slow oscillation
};

// A card warms up, and other programs start and end.
static inline double weather_drift(const struct weather *weather, double at_s)
{
	double part = at_s / weather->search_s;
	return weather->drift * ((1 - exp(-3 * part)) + 0.3 * sin(2 * M_PI * part + weather->phase));
}

static inline struct tune_window card_window(const struct card *card, double limit_w, double seconds,
	const struct weather *weather, double *clock_s, struct rng *rng)
{
	struct truth truth = card_at(card, limit_w);
	double drift = weather_drift(weather, *clock_s);
	double step_s = truth.time_s * exp(weather->noise * dice_normal(rng) + drift / 2);
	double step_j = truth.energy_j * exp(weather->noise * dice_normal(rng) + drift);
	double steps = fmax(ceil(seconds / step_s), 1);
	struct tune_window window = {.steps = steps,
		.energy_j = steps * step_j,
		.energy_error_j = 0.002 * steps * step_j,
		.time_s = steps * step_s,
		.at_s = *clock_s + 2 + steps * step_s / 2};
	*clock_s += 2 + window.time_s; // the limit takes 2 s to act
	return window;
}
