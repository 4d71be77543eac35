/* What all readers of one board share: its handle, what it can't, and whether it is there. */
#pragma once

#include "sensor/gpu/nvml_api.h"

#include <stdbool.h>
#include <stdint.h>

enum nvml_query {
	NVML_QUERY_ENERGY,
	NVML_QUERY_POWER,
	NVML_QUERY_FIELDS,
	NVML_QUERY_POWER_SAMPLES,
	NVML_QUERY_POWER_CAP,
	NVML_QUERY_UTILIZATION,
	NVML_QUERY_MEMORY_V2,
	NVML_QUERY_MEMORY_V1,
	NVML_QUERY_TEMPERATURE,
	NVML_QUERY_SM_CLOCK,
	NVML_QUERY_MEMORY_CLOCK,
	NVML_QUERY_THROTTLE,
	NVML_QUERY_SM_SAMPLES,
	NVML_QUERY_ACCOUNTS,
	NVML_QUERY_PROCESSES, // + enum nvml_process_kind
};

struct nvml_board {
	const struct nvml_api *api;   // borrowed
	const struct wattle_env *env; // borrowed: the clocks
	nvml_device handle;           // NULL: the driver refuses it, or it was not opened yet
	uint32_t unsupported;         // a bit for each enum nvml_query that is not asked again
	bool lost;                    // fell off the bus
};

// Many GPUs lack some of the figures, and a driver call costs microseconds to milliseconds: a query that the driver says
// is not supported is not asked again on that board, and one that fell off the bus is not asked anything.
static inline bool nvml_asks(const struct nvml_board *board, unsigned int query)
{
	return board->handle != NULL && !board->lost && (board->unsupported & UINT32_C(1) << query) == 0;
}

static inline void nvml_stop_asking(struct nvml_board *board, unsigned int query)
{
	board->unsupported |= UINT32_C(1) << query;
}

// Remembers the answers after which asking again is of no use; returns the code.
static inline int nvml_note(struct nvml_board *board, unsigned int query, int code)
{
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND || code == NVML_VERSION_ARGUMENT ||
		code == NVML_DEPRECATED)
		nvml_stop_asking(board, query);
	return code;
}
