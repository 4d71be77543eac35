/* A GPU's calibration from phases of power: idle, loaded, idle, loaded … idle. Pure: no clock, no file.
 *
 * Each loaded phase is compared with the mean of the two idle phases around it, so that slow drift (temperature, fans) cancels.
 * A meter before the power supply sees
 *
 *	efficiency · Δwall = factor · Δgpu + Δothers
 *
 * with Δothers what packages, memory and the other GPUs used more. A meter in the supply lines of the card alone (efficiency 1,
 * without error) sees the card's part only. The factor is the mean over the loaded phases. Its error (half of a 95 % interval) is
 * the root of the sum of the squares of
 *
 *	scatter     Student's 95 % limit of the mean over the phases
 *	efficiency  its stated error
 *	others      10 % of what counters say they used, what the load model states where they are estimated
 *	meter       1 % of the difference: what a wall meter of class 1 may be off
 *	offset      3 W of the GPU's reading, which a difference can't see and a factor can't mend */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { GPU_FIT_CYCLES = 4, GPU_FIT_PHASES = 2 * GPU_FIT_CYCLES + 1 }; // the first and the last are idle

struct gpu_phase {
	double wall_w, gpu_w;          // as the meters read them
	double others_w, others_error; // of all other domains; relative error of what they change by
};

struct gpu_supply {
	double efficiency, error; // 0.91, 0.05; error 0: the meter is behind the supply, on the card alone
};

struct gpu_fit {
	double factor, error;                              // error relative
	double delta_w;                                    // of the GPU between idle and loaded, as it reads
	double scatter, efficiency, others, meter, offset; // of error, relative
};

// -ERANGE with the reason: the phases can't support a calibration.
int gpu_fit_make(const struct gpu_phase phases[GPU_FIT_PHASES], const struct gpu_supply *supply,
	struct gpu_fit *ret_fit, struct wattle_error *reterr);
