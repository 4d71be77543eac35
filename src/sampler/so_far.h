/* What options->progress is told of besides the last sample: the energy that was used so far, and where in it steps ended. */
#pragma once

#include "energy/track.h"
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
	struct energy_track track;
	bool in_total;
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
// Up to the last sample.
void so_far_add_up(struct so_far *so_far, const struct sampler *sampler);
// After each sample; start_ns: of the recording, 0 as long as it has not begun.
void so_far_tick(struct so_far *so_far, const struct sampler *sampler, int64_t start_ns);
void so_far_step(struct so_far *so_far, int64_t end_ns);
double so_far_energy_j(const struct so_far *so_far); // at the last tick; NaN: unknown
void so_far_forget_points(struct so_far *so_far);
