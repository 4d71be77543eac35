/* Reproducible random numbers: one seed gives the same sequence on every machine, so equal data give equal results. The
 * generator is SplitMix64 (Steele, Lea and Flood 2014): one 64-bit state, good enough for resampling. */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

// Each purpose has its own generator, so that an additional comparison does not change the others.
static inline struct rng rng_init(uint64_t seed, uint64_t purpose)
{
	struct rng rng = {seed};
	rng.state = rng_next(&rng) ^ (purpose * UINT64_C(0xd1342543de82ef95));
	return rng;
}

// Uniform in 0 … sides-1; the bias of the multiplication is below sides/2^32.
static inline uint32_t rng_below(struct rng *rng, uint32_t sides)
{
	return (uint32_t)(((rng_next(rng) >> 32) * sides) >> 32);
}

static inline void rng_shuffle(struct rng *rng, uint32_t *items, uint32_t n)
{
	for (uint32_t left = n; left > 1; left--) {
		uint32_t at = rng_below(rng, left), swapped = items[at];
		items[at] = items[left - 1];
		items[left - 1] = swapped;
	}
}
