/* Selection of the measured GPUs: one numbering over all sensors, --gpus, and the target's environment variables. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Which GPUs are measured: those named by --gpus, else those visible to the target, else all. Pure functions over a list;
 * callers handle drivers and the environment. */

struct gpu_candidate {
	int index;        // over all GPUs of the machine; within a sensor by PCI address
	const char *uuid; // "GPU-…"; "" if unknown
	const char *name;
	double speed;                 // used to guess CUDA's order, see gpu_select_visible; 0: unknown
	bool usable;                  // accessible through the driver; CUDA does not count other GPUs
	const char *const *mig_uuids; // "MIG-…" of its n_mig_uuids instances
	size_t n_mig_uuids;
};

/* --gpus LIST: UUIDs, unambiguous UUID prefixes, or indices, separated by commas. A MIG UUID selects the GPU that contains
 * the instance, because only the GPU has a power sensor. */
struct gpu_list {
	const char *text;
	const struct gpu_candidate *candidates;
	size_t n;
	const char *absent; // phrase for the message: why unlisted GPUs may exist; "" if none
};

// Returns -EINVAL if an entry is empty, whatever GPUs exist.
int gpu_select_check_form(const char *list, struct wattle_error *reterr);
// Sets ret_selected[i] for the candidates named by the list; entries that name none of them are left to other sensors.
void gpu_select_claimed(const char *list, const struct gpu_candidate *candidates, size_t n, bool *ret_selected);
// Returns -EINVAL with a message that lists the valid entries if an entry matches none or several of these GPUs.
int gpu_select_check(const struct gpu_list *list, struct wattle_error *reterr);

/* Applies CUDA_VISIBLE_DEVICES=visible and CUDA_DEVICE_ORDER=order (NULL: not set) as CUDA does. Never fails: CUDA hides an
 * entry that it can't resolve, and everything after it. */
void gpu_select_visible(const char *visible, const char *order, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected);

/* Applies ROCm's variables in sequence: ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES or its substitute (NULL: not set).
 * Each lists indices or UUIDs of the GPUs left by the previous one, renumbers them in its own order, and ends at the first
 * entry that matches none. */
void gpu_select_rocm(const char *const *visible, size_t n_visible, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected);

/* All GPUs of the machine, from any sensor: one numbering (gpu-0, gpu-1 …) and one evaluation of --gpus.
 *
 * At open, each GPU sensor uses gpu_roster_next() as the number of its first GPU. Numbers follow PCI order within a sensor,
 * and NVIDIA comes before AMD before Intel. The sensor then passes all of its GPUs, readable or not, to gpu_roster_add. A
 * sensor whose driver fails, so that its GPUs are unknown, reports the reason with gpu_roster_explain. When all sensors are
 * open, sensor_set_open calls gpu_roster_check to find --gpus entries that match no GPU. */

struct gpu_roster {
	const char *list;          // --gpus or NULL; borrowed
	struct gpu_candidate *all; // owned; the strings are in the arena
	size_t n, capacity;
	struct arena *arena; // owned
	struct buf absent;   // sentences from gpu_roster_explain
};

// Returns -EINVAL for a list that is invalid on any machine (one with an empty entry), or -ENOMEM.
int gpu_roster_open(struct gpu_roster *roster, const char *list, struct wattle_error *reterr);
void gpu_roster_close(struct gpu_roster *roster);
int gpu_roster_next(const struct gpu_roster *roster);
/* Copies the GPUs of one sensor into the roster. With --gpus, ret_selected[i] states whether candidate i is selected. Without
 * it, ret_selected is unchanged and the sensor applies its own environment variables. Returns -ENOMEM on failure. */
int gpu_roster_add(struct gpu_roster *roster, const struct gpu_candidate *candidates, size_t n, bool *ret_selected);
// Records why GPUs of this brand ("NVIDIA") may exist but can't be listed, for the message of gpu_roster_check.
void gpu_roster_explain(struct gpu_roster *roster, const char *brand, const char *why);
// Returns -EINVAL with a message that lists the valid entries if an entry of --gpus matches none or several GPUs.
int gpu_roster_check(const struct gpu_roster *roster, struct wattle_error *reterr);

/* Selection for one sensor: assigns numbers and applies --gpus and the target's environment. */

/* Selection where --gpus is absent: sets ret_wanted for each candidate, and returns the reason shown for the others ("hidden
 * by HIP_VISIBLE_DEVICES"). */
typedef const char *gpu_visibility(const struct sensor_options *options, const struct gpu_candidate *candidates,
	size_t n, bool *ret_wanted);

// Names and numbers the domains gpu-N in order. Call before gpu_choice_resolve.
void gpu_choice_name(struct domain *domains, size_t n, const struct sensor_options *options);
// Creates candidates for the n domains, all usable; the caller adjusts and frees them. Returns NULL without memory.
struct gpu_candidate *gpu_choice_candidates(const struct domain *domains, size_t n);
/* Adds the candidates to options->roster and sets `unwanted` and `used` of each domain, and `why` of the excluded ones.
 * visibility NULL: all are visible. Returns -ENOMEM on failure, also if candidates is NULL. */
int gpu_choice_resolve(struct domain *domains, const struct gpu_candidate *candidates, size_t n,
	gpu_visibility *visibility, const struct sensor_options *options);

/* Environment variables that restrict the visible GPUs, as CUDA and ROCm read them. */

// Sets the corresponding members of *options; borrowed from the environment, which set-uid programs ignore.
void gpu_environment(struct sensor_options *options);
