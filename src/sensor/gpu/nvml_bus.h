/* NVIDIA's GPUs as the kernel's PCI bus shows them: which there are, and which are asleep. Asking NVML anything wakes a
 * laptop's GPU and costs it watts, so its runtime status in /sys is looked at first; that wakes nothing.
 *
 * A GPU that /sys does not show (a container, another tree) counts as awake. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/gpu/nvml_api.h"

#include <stdbool.h>
#include <stddef.h>

enum { NVML_BUS_MAX = 64 };

struct nvml_bus_gpu {
	char address[24]; // "0000:01:00.0"
	struct file_kept status;
};

struct nvml_bus {
	struct nvml_bus_gpu *gpus; // owned; in the order of addresses, as NVML numbers them
	size_t n;
	bool is_listed; // /sys shows the machine's graphics: a GPU that is not among these is not there
};

int nvml_bus_open(struct nvml_bus *bus, const struct wattle_env *env); // -ENOMEM
void nvml_bus_close(struct nvml_bus *bus);
bool nvml_bus_is_asleep(struct nvml_bus *bus, size_t i);
// The NUMA node of the CPU that the GPU hangs on; -1: unknown, or there is only one.
int nvml_bus_numa_node(const struct nvml_bus *bus, const struct wattle_env *env, size_t i);
// True only if /sys shows what GPUs there are, and NVIDIA's are not among them.
bool nvml_bus_has_none(const struct nvml_bus *bus);
// True only if there are GPUs and each of them sleeps.
bool nvml_bus_all_asleep(struct nvml_bus *bus);
// Which of them NVML means; -1: none.
int nvml_bus_find(const struct nvml_bus *bus, const struct nvml_pci *pci);
