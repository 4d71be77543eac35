/* Who is on a GPU: the process lists and the samples of SM use, made into sums for the target and for all others.
 * Nothing here allocates; the memory is the sensor's, made at open. */
#pragma once

#include "sensor/nvml_api.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One process on one GPU, or on one MIG instance of it.
struct nvml_process {
	uint32_t pid;
	uint64_t instance;   // GPU and compute instance in one number; the same for all without MIG
	uint64_t used_bytes; // NVML_NOT_AVAILABLE: the driver does not say
};

// Ascending by pid, then instance; each pair once.
struct nvml_process_set {
	struct nvml_process *processes; // room for `capacity`
	size_t n, capacity;
};

// Adds `count` records of `record_size` bytes as a list filled them. A process that computes and draws stands in two
// lists with the same total, so it is kept once. False if there was no more room.
bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count);

// Fills MAIN_MEMORY, TARGET_MEMORY, OTHERS_MEMORY, TARGET_PROCESSES and OTHERS_PROCESSES. A sum of which a part is
// unknown stays missing; without a target only the others are filled.
void nvml_process_set_sum(const struct nvml_process_set *set, const struct sensor_context *context, int64_t *row);

struct nvml_sm_use {
	double target_percent, others_percent;
};

/* Mean SM use over (last_seen_us, newest sample], summed over the processes of each side. A process may have several
 * samples: each stands for the time since the one before it, and they are averaged by that time, not added up. Known
 * garbage is left out: pid 0, more than 100 percent, samples that were seen before. Reorders `samples`; returns the
 * newest time stamp, last_seen_us if there was nothing new. */
uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us,
	const struct sensor_context *context, struct nvml_sm_use *ret_use);
