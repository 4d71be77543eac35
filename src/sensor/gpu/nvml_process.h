/* Who is on a GPU: the driver's process lists, made into one set, then into sums for the target and for all others.
 * Nothing here allocates; the memory is the sensor's, made at open. */
#pragma once

#include "sensor/gpu/nvml_board.h"
#include "sensor/gpu/pid_match.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One process on one GPU, or on one MIG instance of it.
struct nvml_process {
	uint32_t pid;
	uint64_t instance;   // GPU and compute instance in one number; NVML_NO_INSTANCE without MIG
	uint64_t used_bytes; // NVML_NOT_AVAILABLE: the driver does not say
	enum pid_side side;
	bool is_main;
};

#define NVML_NO_INSTANCE UINT64_MAX

static inline uint64_t nvml_instance_id(uint32_t gpu_instance, uint32_t compute_instance)
{
	return (uint64_t)gpu_instance << 32 | compute_instance;
}

// Ascending by pid, then instance; each pair once.
struct nvml_process_set {
	struct nvml_process *processes; // room for `capacity`
	size_t n, capacity;
};

// Adds `count` records of `record_size` bytes as a list filled them. A process that computes and draws stands in two
// lists with the same total, so it is kept once. Records without an instance of their own get `instance`. False if there
// was no more room.
bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count,
	uint64_t instance);

/* Whose the processes of one GPU are. Ids that pid_match can't tell are settled together, by who has the device open or
 * because nobody else here uses it. */
struct nvml_owners {
	enum pid_method method; // the weakest that was needed
	enum pid_side rest;     // whose the ids are that pid_match does not know; PID_UNKNOWN: nobody can tell
	bool presence_only;     // only how many processes each side has is known, not which they are
	int64_t target, others; // processes; VALUE_MISSING: unknown
};
// Sets `side` of each process of the set too.
void nvml_process_set_judge(struct nvml_process_set *set, struct pid_match *match, unsigned int minor,
	struct nvml_owners *ret_owners);

// Fills MAIN_MEMORY, TARGET_MEMORY, OTHERS_MEMORY, TARGET_PROCESSES and OTHERS_PROCESSES. A sum of which a part is
// unknown stays missing; without a target only the others are filled.
void nvml_process_set_sum(const struct nvml_process_set *set, const struct nvml_owners *owners, bool has_target,
	int64_t *row);
