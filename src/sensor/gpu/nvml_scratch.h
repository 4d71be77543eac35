/* Room for the driver's answers, made once at open and used for one GPU after the other. */
#pragma once

#include "sensor/gpu/nvml_accounts.h"
#include "sensor/gpu/nvml_energy.h"
#include "sensor/gpu/nvml_process.h"
#include "sensor/gpu/nvml_use.h"

#include <stddef.h>

struct nvml_scratch {
	void *records; // owned; n_records of the largest layout
	size_t n_records;
	struct nvml_process_set processes;  // .processes owned
	struct nvml_use_room use;           // .samples owned
	struct nvml_power_room power;       // .samples owned
	struct nvml_accounts_room accounts; // .pids owned
};

// Room for so many samples of SM use and of power as a driver said it may return, and for more processes than there are.
int nvml_scratch_open(struct nvml_scratch *scratch, size_t n_use, size_t n_power); // -ENOMEM
void nvml_scratch_close(struct nvml_scratch *scratch);
