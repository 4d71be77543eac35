/* Time stamps that a device puts on its readings, made into CLOCK_MONOTONIC, and counters that start anew. */
#pragma once

#include "base/env.h"

#include <stdbool.h>
#include <stdint.h>

struct stamp_clock {
	const struct wattle_env *env; // borrowed
	int64_t offset_ns;            // the device's clock minus ours
	int64_t last_stamp_ns, last_ns;
	bool anchored, foreign;
};

void stamp_clock_init(struct stamp_clock *clock, const struct wattle_env *env);
/* When, on CLOCK_MONOTONIC, the reading was made that carries this stamp and was seen at now_ns. One stamp gives one
 * answer, and none lies in the future. A stamp of the last minute by our wall clock, or by our uptime, is believed;
 * any other counts from an epoch that is not ours (`foreign`): then the quickest reading so far is taken to have been
 * seen the moment it was made, so that differences are the device's own and the rest is off by what reading takes. */
int64_t stamp_to_monotonic(struct stamp_clock *clock, int64_t stamp_ns, int64_t now_ns);

/* A jump that no power explains: added to a counter that began anew, it makes the sampler see a restart whatever the
 * values are, and take the energy in between for unknown. running_ns: at least the time since the last change. */
int64_t counter_restart_jump_uj(double max_power_w, int64_t running_ns);
