/* What the kernel says of a process's open graphics device: /proc/PID/fdinfo/FD, one "key: value" a line, as
 * Documentation/gpu/drm-usage-stats.rst has it. Pure: from text to values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Engines that run shaders. Copy, video and display engines are left out: the driver's busy percent means these.
enum drm_engine { DRM_RENDER, DRM_COMPUTE, DRM_ENGINES };

struct drm_engine_use {
	int64_t busy;     // ns, or cycles where total_cycles is known; VALUE_MISSING: no such engine
	int64_t cycles;   // of the engine's clock altogether; VALUE_MISSING: busy is in ns
	int64_t capacity; // engines of this class that may be busy at the same time; at least 1
};

struct drm_fdinfo {
	char pdev[24];   // PCI address
	uint64_t client; // id of the open device: descriptors that were inherited or copied share it
	bool has_client;
	struct drm_engine_use engines[DRM_ENGINES];
	int64_t memory_bytes; // of the card's own memory; VALUE_MISSING: not told
};

// False if the text is not that of a graphics device. `text` is changed.
bool drm_fdinfo_parse(char *text, struct drm_fdinfo *ret_info);
