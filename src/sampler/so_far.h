/* What options->progress is told of besides the last sample: the energy that was used so far, and where in it steps ended. */
#pragma once

#include "metric/metric.h"
#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEP_POINTS = 128, SO_FAR_TICKS = 16 };

struct step_point { // so many steps had ended, the last of them now
	int64_t steps, t_ns;
	double energy_j; // since the start; NaN unknown
};

struct so_far_device {
	bool in_total, is_known;
	int64_t first_ns;  // when the counter was read first
	int64_t moved_ns;  // when the counter was seen to move last; 0: not since the start
	int64_t t_ns;      // of the power, where there is no counter
	double power_w;    // read, or by the counter's last move
	double counted_uj; // by the counter since the first reading, or from power
	double early_uj;   // of it, before the start, besides a part of the first move …
	double first_uj;   // … which was this much; 0: none, or the counter could be read only later
	int64_t first_moved_ns;
	int64_t rest_ns; // from the first move to the second; 0: not known yet
};

struct so_far {
	struct so_far_device *devices; // owned, one a device; NULL: nobody wants to know
	int64_t start_ns;
	struct so_far_tick {
		int64_t t_ns;
		double energy_j;
	} ticks[SO_FAR_TICKS];      // a ring
	size_t n_ticks;             // in all
	bool has_pace;              // of each of them it is known how often it moves, so that power can be told
	enum provenance provenance; // of them, the weakest
	size_t n_known;             // devices that the last tick adds up: a further one brings all its past
	int64_t steps, step_ns;     // of which the last one ended then
	struct step_point points[STEP_POINTS];
	size_t n_points;
};

int so_far_open(struct so_far *so_far, const struct sampler *sampler); // -ENOMEM
void so_far_close(struct so_far *so_far);
// After each sample; start_ns: of the recording, 0 as long as it has not begun.
void so_far_tick(struct so_far *so_far, const struct sampler *sampler, int64_t start_ns);
void so_far_step(struct so_far *so_far, int64_t end_ns);
double so_far_energy_j(const struct so_far *so_far); // at the last tick; NaN: unknown
void so_far_forget_points(struct so_far *so_far);
