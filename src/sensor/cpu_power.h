/* What a CPU model is rated for. */
#pragma once

#include <stdbool.h>

struct cpu_power {
	double tdp_w; // thermal design power of one socket
	int cores;    // of one socket
};

// model_name as in /proc/cpuinfo; false if the model is not in the table.
bool cpu_power_find(const char *model_name, struct cpu_power *ret_power);
