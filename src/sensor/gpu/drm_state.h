/* Whether a graphics card may be read now, and what to tell of one that may not. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/sensor.h"

#include <stdbool.h>

struct drm_power {
	struct file_kept status; // .path "": the kernel was built without runtime power management
};

// device: its folder, relative to /sys.
void drm_power_open(struct drm_power *power, const struct wattle_env *env, const char *device);
void drm_power_close(struct drm_power *power);
// Suspended at run time, as GPUs of laptops are: reading any other file of it would wake it.
bool drm_power_sleeps(struct drm_power *power);

enum drm_state { DRM_AWAKE, DRM_ASLEEP, DRM_GONE };

// Keeps domain->note: says so of a card that sleeps or is gone, and takes that back when it is there again.
void drm_state_tell(struct domain *domain, enum drm_state state);
