/* Whose the energy of a device is, for reports (analysis/energy/attribute.h) and live views (now/divide.c) alike.
 *
 *   CPU packages and memory   by share of what is in use: CPU time, memory
 *   GPUs                      by MIG slices where the GPU is cut into instances; else by share of SM time, else of device memory, else
 *                             by who is on it at all */
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

struct shares { // the rest is the other programs'
	double target, wattle, idle, unattributed;
	enum method method;
};

// Of what is in use of a resource; NaN: unknown.
struct shares shares_of_use(double target, double wattle, double whole, enum method method);

struct gpu_use { // NaN unknown
	double busy_percent;
	struct gpu_part {
		double processes, slices, busy, memory; // slices: of the whole GPU
	} target, others;
};
struct shares shares_of_gpu(const struct gpu_use *use);
