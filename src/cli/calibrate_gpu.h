/* wattle sensors --calibrate-gpu INDEX --wall-meter FILE -- CMD: the factor of a GPU's power sensor against a meter outside,
 * stored in the state folder (sensor/gpu/gpu_gain.h). CMD, which loads the GPU, is started and ended four times, with idle
 * phases around. How the factor and its error are computed: gpu_fit.h. */
#pragma once

#include "base/env.h"
#include "cli/gpu_fit.h"

struct calibrate_gpu {
	int index;
	const char *wall_meter;
	struct gpu_supply supply;
	double seconds; // of a phase, without what is left out after each change
	char *const *argv;
};

// "92±2", as --gpu-gain has it; 100: the meter is on the card alone. -EINVAL with a sentence.
int calibrate_gpu_supply(const char *text, struct gpu_supply *ret_supply, struct wattle_error *reterr);
// An exit status.
int calibrate_gpu(const struct wattle_env *env, const struct calibrate_gpu *how);
