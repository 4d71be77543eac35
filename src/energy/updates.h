/* How an energy counter moves: how often, how regularly, in which steps. The sampler measures the period and its jitter
 * and keeps them up; where it could not, the readings themselves tell. */
#pragma once

#include "base/arena.h"
#include "store/run.h"

#include <stdbool.h>

struct updates {
	double period_s;  // between two updates; NaN unknown
	double jitter_s;  // an update comes this much early or late; 0 where the period is unknown
	double quantum_j; // smallest step; 0 unknown
	double longest_s; // an update is at most this old: period and jitter, or a guess where they are unknown
};

int updates_make(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct updates *ret_updates); // -ENOMEM
