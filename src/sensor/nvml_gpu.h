/* One GPU behind NVML: what it is, and one reading of everything it tells.
 *
 * Many GPUs lack some of the figures, and a driver call costs microseconds to milliseconds. So a query that the driver
 * says is not supported is not asked again on that GPU, and a GPU that fell off the bus is not asked anything again. */
#pragma once

#include "sensor/nvml_api.h"
#include "sensor/nvml_process.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nvml_query {
	NVML_QUERY_ENERGY,
	NVML_QUERY_POWER,
	NVML_QUERY_POWER_CAP,
	NVML_QUERY_UTILIZATION,
	NVML_QUERY_MEMORY_V2,
	NVML_QUERY_MEMORY_V1,
	NVML_QUERY_TEMPERATURE,
	NVML_QUERY_SM_CLOCK,
	NVML_QUERY_MEMORY_CLOCK,
	NVML_QUERY_THROTTLE,
	NVML_QUERY_SM_SAMPLES,
	NVML_QUERY_PROCESSES, // + enum nvml_process_kind
};

struct nvml_gpu {
	nvml_device handle;   // NULL: the driver refuses it
	uint32_t unsupported; // a bit for each enum nvml_query that is not asked again
	bool lost;
	uint64_t sm_seen_us;    // newest sample of SM use so far, on the driver's clock
	uint64_t sm_spacing_us; // shortest time between two new ones; 0 before there were two
	int64_t sm_fresh_ns;    // when it was new to us
	struct nvml_sm_use sm_use;
};

// Room for the driver's answers, made once at open and used for one GPU after the other.
struct nvml_scratch {
	void *records; // owned; n_records of the largest layout
	size_t n_records;
	struct nvml_process_set processes;   // .processes owned
	struct nvml_process_sample *samples; // owned; n_samples of them
	size_t n_samples;
};

// Fills the domain of a GPU whose handle could be had: name, UUID, memory, limits, and whether it counts energy.
void nvml_gpu_describe(const struct nvml_api *api, struct nvml_gpu *gpu, struct domain *domain);
// Rough speed to guess CUDA's order of GPUs: cores times highest clock; 0 unknown.
double nvml_gpu_speed(const struct nvml_api *api, const struct nvml_gpu *gpu);
// How many samples of SM use the driver may return for this GPU; also finds out whether it has any.
size_t nvml_gpu_sample_room(const struct nvml_api *api, struct nvml_gpu *gpu);
// Makes the first reading begin now, not with what the driver still remembers from before.
void nvml_gpu_prime(const struct nvml_api *api, struct nvml_gpu *gpu, struct nvml_scratch *scratch);

// One reading into a row that is preset to VALUE_MISSING. What fails stays so.
void nvml_gpu_read(const struct nvml_api *api, struct nvml_gpu *gpu, struct nvml_scratch *scratch,
	const struct sensor_context *context, int64_t *row);
