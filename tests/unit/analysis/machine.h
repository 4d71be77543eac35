/* A simulated machine whose energy is known exactly: power in levels, a counter or a power meter with all their
 * properties, and a recorder that reads them at given times. */
#pragma once

#include "builder.h"

static inline uint64_t random_next(uint64_t *state) // xorshift64*
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static inline double random_uniform(uint64_t *state)
{
	return (double)(random_next(state) >> 11) / 9007199254740992.0;
}

static inline double random_between(uint64_t *state, double low, double high)
{
	return low + (high - low) * random_uniform(state);
}

/* ---- the load ---- */

enum { LEVELS_MAX = 4096 };

struct load { // power w[i] from t_s[i] on
	size_t n;
	double t_s[LEVELS_MAX], w[LEVELS_MAX], j[LEVELS_MAX];
};

static inline void load_add(struct load *load, double t_s, double w)
{
	size_t i = load->n++;
	load->t_s[i] = t_s;
	load->w[i] = w;
	load->j[i] = i > 0 ? load->j[i - 1] + load->w[i - 1] * (t_s - load->t_s[i - 1]) : 0;
}

static inline size_t load_level(const struct load *load, double t_s)
{
	size_t low = 0, high = load->n;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (load->t_s[middle] <= t_s)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static inline double load_energy_j(const struct load *load, double t_s)
{
	size_t i = load_level(load, t_s);
	return load->j[i] + load->w[i] * (t_s - load->t_s[i]);
}

enum load_kind { LOAD_STEPS, LOAD_SQUARE, LOAD_RANDOM };

// From 5 s before the run to 25 s after its start.
static inline void load_make(struct load *load, enum load_kind kind, uint64_t *random)
{
	double t_s = -5, low_w = random_between(random, 20, 60), high_w = random_between(random, 80, 300);
	double period_s = random_between(random, 0.3, 3), duty = random_between(random, 0.2, 0.8);
	load->n = 0;
	for (size_t i = 0; t_s < 25; i++) {
		bool high = i % 2 == 1;
		double w = high ? high_w : low_w, lasts_s = period_s * (high ? duty : 1 - duty);
		if (kind == LOAD_STEPS) {
			w = random_between(random, 20, 300);
			lasts_s = random_between(random, 0.5, 2.5);
		} else if (kind == LOAD_RANDOM) {
			w = random_between(random, 40, 200);
			lasts_s = random_between(random, 0.03, 0.3);
		}
		load_add(load, t_s, w);
		t_s += lasts_s;
	}
}

// The machine is idle before the program starts and after it has ended, as in most measurements.
static inline void load_program(struct load *load, double end_s, uint64_t *random)
{
	double idle_w = random_between(random, 20, 60), t_s = 0;
	load->n = 0;
	load_add(load, -5, idle_w);
	while (t_s < end_s) {
		load_add(load, t_s, idle_w + random_between(random, 50, 250));
		t_s += random_between(random, 0.2, 2);
	}
	load_add(load, end_s, idle_w);
}

/* ---- the counter ---- */

struct counter_model {
	double period_s, jitter_s, quantum_j, phase_s;
	double held_part, held_s; // fraction of updates that are later still, by up to this
	uint64_t seed;            // of the jitter
};

// Time of update number `n`.
static inline double counter_update_s(const struct counter_model *counter, int64_t n)
{
	uint64_t hash = (counter->seed ^ (uint64_t)n) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	random_next(&hash);
	double early = 2 * random_uniform(&hash) - 1, held_s = 0;
	if (counter->held_part > 0 && random_uniform(&hash) < counter->held_part)
		held_s = counter->held_s * random_uniform(&hash);
	return counter->phase_s + (double)n * counter->period_s + early * counter->jitter_s / 2 + held_s;
}

static inline double counter_last_update_s(const struct counter_model *counter, double t_s)
{
	int64_t n = (int64_t)floor((t_s - counter->phase_s) / counter->period_s) + 1;
	while (counter_update_s(counter, n) > t_s)
		n--;
	return counter_update_s(counter, n);
}

static inline int64_t counter_read_uj(const struct counter_model *counter, const struct load *load, double t_s)
{
	double j = load_energy_j(load, counter_last_update_s(counter, t_s));
	if (counter->quantum_j > 0)
		j = floor(j / counter->quantum_j) * counter->quantum_j;
	return llround(j * 1e6);
}
