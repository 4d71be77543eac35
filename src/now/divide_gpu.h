/* The GPUs' part of divide_watts. */
#pragma once

#include "base/known.h"
#include "base/util.h"
#include "now/domains.h"
#include "now/processes.h"

// Parts of a domain's power; what is left of 1 is the others'.
struct split {
	double target, own, idle, unattributed;
};

// Before the first GPU of a look: nobody uses any.
void divide_gpu_begin(struct process_table *processes);
// One GPU: adds to gpu_percent, gpu_memory_bytes, gpu_w and energy_j of its users.
struct split divide_gpu(struct domain_table *domains, size_t i, struct process_table *processes);
