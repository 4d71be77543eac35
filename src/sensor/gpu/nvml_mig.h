/* A GPU that is cut into MIG instances. Energy is metered for the whole board only, so it stays the parent's, once; what
 * instances give is who had which part of it: the SM slices of the instances that target and others have processes on.
 * Instances are those of the start of the run. */
#pragma once

#include "sensor/gpu/nvml_board.h"
#include "sensor/gpu/nvml_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NVML_INSTANCES_MAX = 16 }; // a board holds at most seven today

struct nvml_instance {
	nvml_device handle;
	uint64_t id;     // as in struct nvml_process
	uint32_t slices; // of SMs; 0: the driver does not say
	uint64_t memory_bytes;
	double share; // of the GPU
	char uuid[NVML_TEXT_MAX];
	char name[NVML_TEXT_MAX];
};

struct nvml_mig {
	bool on;
	uint32_t total_slices;
	struct nvml_instance instances[NVML_INSTANCES_MAX];
	size_t n;
};

// memory_bytes: of the whole GPU; 0 unknown.
void nvml_mig_open(struct nvml_mig *mig, const struct nvml_board *board, uint64_t memory_bytes);
// Fills TARGET_MIG_SHARE and OTHERS_MIG_SHARE from a set that was judged. Nothing where MIG is off.
void nvml_mig_put_shares(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_owners *owners, bool has_target, int64_t *row);
// The part of the GPU that is one process's of the set: of its instance, divided with the others there. NaN where MIG is off, or
// it is not told on which instance the process is.
double nvml_mig_part_of(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_process *process);
// Slices in the name of an instance: 3 for "… MIG 3g.20gb", 1 for "… MIG 1c.3g.20gb"; 0 if it tells none. Pure.
uint32_t nvml_mig_slices_of_name(const char *name);
