/* From the GPUs that a sensor found to those that are measured: numbers, --gpus, the target's environment. */
#pragma once

#include "sensor/gpu/gpu_select.h"
#include "sensor/sensor.h"

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
