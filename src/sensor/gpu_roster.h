/* Which GPUs are measured: one numbering over all sensors, --gpus, and what the target's environment shows. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Which GPUs are measured: those asked for with --gpus, else those that the target can see, else all.
 * Pure functions over a list; drivers and the environment are the caller's business. */

struct gpu_candidate {
	int index;        // of all GPUs of the machine; within a sensor the order of PCI addresses
	const char *uuid; // "GPU-…"; "" unknown
	const char *name;
	double speed;                 // to guess CUDA's own order, see gpu_select_visible; 0 unknown
	bool usable;                  // the driver lets us have it; CUDA does not count the others
	const char *const *mig_uuids; // "MIG-…" of its instances, n_mig_uuids of them
	size_t n_mig_uuids;
};

/* LIST of --gpus: UUIDs, unambiguous beginnings of UUIDs, or indices, separated by commas. A MIG UUID selects the GPU
 * that holds the instance, because only that has a power sensor. */
struct gpu_list {
	const char *text;
	const struct gpu_candidate *candidates;
	size_t n;
	const char *absent; // why there may be more GPUs than can be listed, a phrase for the message; ""
};

// -EINVAL if an entry is empty, whatever GPUs there may be.
int gpu_select_check_form(const char *list, struct wattle_error *reterr);
// Sets ret_selected[i] for the candidates that the list names; entries that name none of them are left to others.
void gpu_select_claimed(const char *list, const struct gpu_candidate *candidates, size_t n, bool *ret_selected);
// -EINVAL with a sentence that tells what is valid if an entry is none of these GPUs, or fits several.
int gpu_select_check(const struct gpu_list *list, struct wattle_error *reterr);

/* What CUDA would show for CUDA_VISIBLE_DEVICES=visible and CUDA_DEVICE_ORDER=order (NULL: not set). Never an error:
 * CUDA hides an entry that it can't resolve, and everything after it. */
void gpu_select_visible(const char *visible, const char *order, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected);

/* What ROCm shows for its variables, applied one after the other (ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES or what
 * HIP takes in its place; NULL: not set). Each lists numbers or UUIDs of what the one before it left, which it numbers
 * anew in its own order, and counts up to the first entry that names none. */
void gpu_select_rocm(const char *const *visible, size_t n_visible, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected);

/* All GPUs of the machine, whichever sensor found them: one numbering (gpu-0, gpu-1 …) and one answer to --gpus.
 *
 * Each GPU sensor, at open: takes gpu_roster_next() as the number of its first GPU (they are counted in PCI order within
 * a sensor, NVIDIA's before AMD's before Intel's), then hands all of its GPUs to gpu_roster_add, those that it can't
 * read too. A sensor whose driver fails, so that it can't say what it has, says why with gpu_roster_explain. When all
 * sensors are open, sensor_set_open asks gpu_roster_check whether --gpus named anything that none of them has. */

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

/* From the GPUs that a sensor found to those that are measured: numbers, --gpus, the target's environment. */

/* What decides where --gpus does not: sets ret_wanted for each candidate, and returns what to tell of those left out
 * ("hidden by HIP_VISIBLE_DEVICES"). */
typedef const char *gpu_visibility(const struct sensor_options *options, const struct gpu_candidate *candidates,
	size_t n, bool *ret_wanted);

// Names and numbers the domains gpu-N in their order. Before gpu_choice_settle.
void gpu_choice_name(struct domain *domains, size_t n, const struct sensor_options *options);
// The n domains as candidates, all usable: the caller changes what it knows better, and frees them. NULL: no memory.
struct gpu_candidate *gpu_choice_candidates(const struct domain *domains, size_t n);
/* Enters the candidates into options->roster and settles which are wanted: sets `unwanted`, `used`, and `why` of those left
 * out. visibility NULL: all are visible. -ENOMEM, also where candidates is NULL. */
int gpu_choice_settle(struct domain *domains, const struct gpu_candidate *candidates, size_t n,
	gpu_visibility *visibility, const struct sensor_options *options);

/* The variables by which a program is shown some GPUs only, as CUDA and ROCm read them. */

// Fills the members of *options that hold them; borrowed from the environment, which set-uid programs ignore.
void gpu_environment(struct sensor_options *options);
