/* AMD's management library, ROCm SMI, loaded at run time in our own declarations. Only for figures that the driver's files
 * lack: it reads the same files, and a machine need not have it. */
#pragma once

#include "base/env.h"

#include <stddef.h>
#include <stdint.h>

enum rocm_figure {
	ROCM_ENERGY, // accumulator, in 2^-16 J
	ROCM_POWER,  // mW
	ROCM_POWER_CAP,
	ROCM_BUSY, // percent
	ROCM_MEMORY_USED,
	ROCM_MEMORY_TOTAL, // bytes
	ROCM_TEMPERATURE,  // °C
	ROCM_UNIQUE_ID,
	ROCM_FIGURES
};

struct rocm_smi;

// Loads env->rocm_smi or librocm_smi64.so and initialises it. NULL: it is not there, or has no driver to talk to.
struct rocm_smi *rocm_smi_open(const struct wattle_env *env);
void rocm_smi_close(struct rocm_smi *smi); // NULL allowed
size_t rocm_smi_count(const struct rocm_smi *smi);
// PCI address of GPU i as /sys writes it; "" unknown.
void rocm_smi_address(const struct rocm_smi *smi, size_t gpu, char *out, size_t size);
void rocm_smi_name(const struct rocm_smi *smi, size_t gpu, char *out, size_t size); // "" unknown
// VALUE_MISSING: this library or this GPU has no such figure.
int64_t rocm_smi_read(const struct rocm_smi *smi, size_t gpu, enum rocm_figure figure);
