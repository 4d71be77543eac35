/* All GPUs of the machine, whichever sensor found them: one numbering (gpu-0, gpu-1 …) and one answer to --gpus.
 *
 * Each GPU sensor, at open: takes gpu_roster_next() as the number of its first GPU (they are counted in PCI order within
 * a sensor, NVIDIA's before AMD's before Intel's), then hands all of its GPUs to gpu_roster_add, those that it can't
 * read too. A sensor whose driver fails, so that it can't say what it has, says why with gpu_roster_explain. When all
 * sensors are open, sensor_set_open asks gpu_roster_check whether --gpus named anything that none of them has. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "sensor/gpu/gpu_select.h"

#include <stdbool.h>
#include <stddef.h>

struct gpu_roster {
	const char *list;          // --gpus or NULL; borrowed
	struct gpu_candidate *all; // owned; the texts lie in the arena
	size_t n, capacity;
	struct arena *arena; // owned
	struct buf absent;   // what gpu_roster_explain was told, as sentences
};

// -EINVAL for a list that no machine could satisfy: one with an empty entry; -ENOMEM.
int gpu_roster_open(struct gpu_roster *roster, const char *list, struct wattle_error *reterr);
void gpu_roster_close(struct gpu_roster *roster);
int gpu_roster_next(const struct gpu_roster *roster);
/* Adds the GPUs of one sensor, copied. With --gpus ret_selected[i] says whether candidate i is asked for; without it
 * ret_selected is untouched and the sensor goes by its own environment variables. -ENOMEM. */
int gpu_roster_add(struct gpu_roster *roster, const struct gpu_candidate *candidates, size_t n, bool *ret_selected);
// Remembers, for the message of gpu_roster_check, why there may be GPUs of this brand ("NVIDIA") that nobody can list.
void gpu_roster_explain(struct gpu_roster *roster, const char *brand, const char *why);
// -EINVAL with a sentence that lists the valid ones if an entry of --gpus is nobody's, or fits several GPUs.
int gpu_roster_check(const struct gpu_roster *roster, struct wattle_error *reterr);
