/* One GPU behind NVML: what it is, and one reading of everything it tells.
 *
 * Energy and power are read each time. What changes slowly, or costs a driver milliseconds, has a pace of its own, so that
 * fast sampling is not paid for with twenty calls a tick; in the rows between, the last value stands. */
#pragma once

#include "sensor/gpu/nvml_accounts.h"
#include "sensor/gpu/nvml_board.h"
#include "sensor/gpu/nvml_energy.h"
#include "sensor/gpu/nvml_mig.h"
#include "sensor/gpu/nvml_process.h"
#include "sensor/gpu/nvml_scratch.h"
#include "sensor/gpu/nvml_use.h"
#include "sensor/gpu/nvml_users.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nvml_pace { NVML_OFTEN, NVML_SELDOM, NVML_PACES };

struct nvml_gpu {
	struct nvml_board board;
	struct domain *domain; // the sensor's
	struct domain *beside[NVML_SCOPES]; // the sensor's: of the module and of the memory; NULL: there is none
	struct nvml_energy energy;
	struct nvml_use use;
	struct nvml_mig mig;
	struct nvml_accounts accounts;
	struct nvml_owners owners;
	struct nvml_users users;
	unsigned int minor;          // of /dev/nvidia<minor>
	int on_bus;                  // its place in nvml_bus; -1: not found there
	int64_t next_ns[NVML_PACES]; // when the queries of that pace are due
	int64_t held[DEVICE_COUNT];  // the last values of what has a pace
	bool had_target;             // at the last reading
	int64_t retry_ns;            // lost: when to look whether it is back
};

// Fills the domain of a GPU whose handle could be had: name, UUID, memory, limits, and how its energy is told. With
// power_only its energy is left to be integrated from power.
void nvml_gpu_describe(struct nvml_gpu *gpu, bool power_only);
// The domain of the module that the GPU is on, or of its memory; `index` is the module's number.
void nvml_gpu_describe_beside(struct nvml_gpu *gpu, enum nvml_scope scope, int index, struct domain *ret_domain);
// A GPU of which only other figures than energy and power can be read: why, and what can be done.
void nvml_gpu_explain_no_power(struct nvml_gpu *gpu, char *ret_why, size_t size, const char **ret_remedy);
// Rough speed to guess CUDA's order of GPUs: cores times highest clock; 0 unknown.
double nvml_gpu_speed(const struct nvml_gpu *gpu);
// Makes the first reading begin now, not with what the driver still remembers from before.
void nvml_gpu_prime(struct nvml_gpu *gpu, const struct nvml_scratch *scratch);

// One reading into rows that are preset to VALUE_MISSING. What fails stays so. rows: by scope, NULL what is not wanted.
void nvml_gpu_read(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match,
	const struct sensor_context *context, int64_t *const rows[NVML_SCOPES]);
