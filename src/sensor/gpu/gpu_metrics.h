/* The binary table `gpu_metrics` of the amdgpu driver: a header that says which layout follows, then numbers in native
 * byte order. Pure: from bytes to values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPU_METRICS_SIZE_MAX = 8192 }; // more than the largest known layout has, v1.8 with 3.9 kB

// An accumulator beyond this (nine million million joules) is garbage; in µJ it would leave 63 bits.
#define GPU_ENERGY_UNITS_MAX INT64_C(600000000000000000)

struct gpu_metrics {
	bool is_apu; // a table of an APU, whose power is that of the whole socket
	// Each is VALUE_MISSING where the layout has no such field or the chip does not fill it.
	int64_t energy_units; // accumulator, in 2^-16 J
	int64_t power_mw;
	int64_t temperature_c; // edge, or hotspot where there is no edge
	int64_t gfx_percent, memory_percent;
};

// -EINVAL: cut short, no table, or of a layout that is not known.
int gpu_metrics_parse(const void *bytes, size_t size, struct gpu_metrics *ret_metrics);
