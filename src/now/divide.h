/* Whose the watts are: the attribution of reports (energy/shares.h), over all processes of the machine and for one look.
 * Pure: from two tables to figures in them. */
#pragma once

#include "energy/shares.h"
#include "now/domains.h"
#include "now/now.h"
#include "now/processes.h"
#include "process/machine.h"

struct divide_machine {
	int64_t busy_ns;           // CPU time since the look before, all cores; VALUE_MISSING unknown
	int64_t memory_used_bytes; // VALUE_MISSING unknown
};

enum now_resource divide_resource(enum domain_kind kind); // what a domain of this kind meters

struct divided { // of the domains in the total
	struct now_sum sum;
	struct now_added added[NOW_RESOURCES];
	bool exists[NOW_RESOURCES];
};

// Fills what is attributed: of each process its watts, GPU use and joules, of each domain target_w.
void divide_watts(struct domain_table *domains, struct process_table *processes, const struct divide_machine *machine,
	struct divided *ret_divided);

/* ---- divide_gpu.c, for divide.c ---- */

// Before the first GPU of a look: nobody uses any.
void divide_gpu_begin(struct process_table *processes);
// One GPU: adds to gpu_percent, gpu_memory_bytes, gpu_w and energy_j of its users.
struct shares divide_gpu(struct domain_table *domains, size_t i, struct process_table *processes);
