/* Memory of a board, by whichever call its driver has. */
#pragma once

#include "sensor/gpu/nvml_board.h"

#include <stdint.h>

struct nvml_memory {
	uint64_t total_bytes, used_bytes; // both without what the driver reserves, where it says so
};

int nvml_memory_read(struct nvml_board *board, struct nvml_memory *ret_memory); // NVML's code
