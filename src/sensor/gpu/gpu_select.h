/* Which GPUs are measured: those asked for with --gpus, else those that the target can see, else all.
 * Pure functions over a list; drivers and the environment are the caller's business. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

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
