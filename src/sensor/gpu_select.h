/* Which GPUs are measured: those asked for with --gpus, else those that the target can see, else all.
 * Pure functions over a list; NVML and the environment are the caller's business. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct gpu_candidate {
	int index;        // NVML's: the order of PCI addresses
	const char *uuid; // "GPU-…"; "" unknown
	const char *name;
	double speed;                 // to guess CUDA's own order, see gpu_select_visible; 0 unknown
	bool usable;                  // the driver lets us have it; CUDA does not count the others
	const char *const *mig_uuids; // "MIG-…" of its instances, n_mig_uuids of them
	size_t n_mig_uuids;
};

struct gpu_request {
	const char *gpus;                 // --gpus LIST, or NULL
	const char *cuda_visible_devices; // as the target will see it, or NULL for not set
	const char *cuda_device_order;
};

// Sets ret_selected[i] for each candidate, in the order of `candidates` (by index). --gpus beats the environment.
// -EINVAL with a sentence that lists what is valid, only for --gpus.
int gpu_select(const struct gpu_request *request, const struct gpu_candidate *candidates, size_t n, bool *ret_selected,
	struct wattle_error *reterr);

/* LIST of --gpus: UUIDs, unambiguous beginnings of UUIDs, or NVML indices, separated by commas. A MIG UUID selects the
 * GPU that holds the instance, because only that has a power sensor. */
int gpu_select_list(const char *list, const struct gpu_candidate *candidates, size_t n, bool *ret_selected,
	struct wattle_error *reterr);

/* What CUDA would show for CUDA_VISIBLE_DEVICES=visible and CUDA_DEVICE_ORDER=order (NULL: not set). Never an error:
 * CUDA hides an entry that it can't resolve, and everything after it. */
void gpu_select_visible(const char *visible, const char *order, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected);
