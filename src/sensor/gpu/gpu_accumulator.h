/* AMD's energy accumulator, watched. It counts 2^-16 J; on some boards in 32 bits of a field of 64; on some it stands
 * still for good, or for a while, although the board draws power. Pure: no clock, no file.
 *
 * What it stood still for is made up from the power reading, so that a run does not end with joules missing; when it
 * moves again, what it has caught up is not counted a second time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gpu_accumulator {
	double max_power_w; // to tell a wrap from a reset
	bool primed;
	bool stood_still;     // it did, at least once; stays set
	uint64_t last_units;  // as read
	uint64_t total_units; // as told: extended, made up parts included
	int64_t last_ns;      // of the last reading
	int64_t power_ns;     // of the last reading with a power
	int64_t moved_ns;     // since when it stands still while there is power
	double waited_units;  // what power says was used since it moved
	double made_up_units; // the part of it that total_units holds
};

void gpu_accumulator_init(struct gpu_accumulator *accumulator, double max_power_w);
// One reading; returns the energy in µJ. power_mw: VALUE_MISSING if it was not read this time.
int64_t gpu_accumulator_feed(struct gpu_accumulator *accumulator, int64_t t_ns, uint64_t units, int64_t power_mw);
// 2^-16 J in µJ, exact to less than one.
int64_t gpu_accumulator_uj(uint64_t units);
