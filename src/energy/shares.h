/* Attribution of a device's energy, for reports (analysis/energy/attribute.h) and live views (monitor/attribution.c).
 *
 *   CPU packages and memory   by share of the used resource: CPU time, memory
 *   GPUs                      by MIG slices if the GPU is partitioned; else by share of SM time, else of device memory,
 *                             else by the presence of processes */
#pragma once

#include "sensor/sensor.h"

enum method { // weakest last; names and errors in attribute.c
	METHOD_CPU_TIME,
	METHOD_SM_TIME,
	METHOD_PSS,
	METHOD_RSS,
	METHOD_MIG_SLICES,
	METHOD_GPU_MEMORY,
	METHOD_EXCLUSIVE,
	METHOD_IDLE,
	METHOD_NONE,
	METHODS
};

struct shares { // the remainder belongs to other programs
	double target, wattle, idle, unattributed;
	enum method method;
};

// Shares of the used part of a resource; NaN: unknown.
struct shares shares_of_use(double target, double wattle, double whole, enum method method);

struct gpu_use { // NaN: unknown
	double busy_percent;
	struct gpu_part {
		double processes, slices, busy, memory; // slices: as a fraction of the whole GPU
	} target, others;
};
struct shares shares_of_gpu(const struct gpu_use *use);
