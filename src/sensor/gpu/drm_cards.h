/* The graphics cards of one maker: class/drm/cardN, without their connectors (card0-HDMI-A-1) and render nodes. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DRM_AMD = 0x1002, DRM_INTEL = 0x8086 };

struct drm_card {
	char name[16];   // "card0"
	char device[48]; // "class/drm/card0/device"
	char hwmon[80];  // "class/drm/card0/device/hwmon/hwmon3"; "" if there is none
	char pci[24];    // "0000:43:00.0"; "" unknown
	char driver[24]; // "amdgpu"; "" unknown
	uint32_t vendor, product;
};

struct drm_cards {
	struct drm_card *cards; // owned; in the order of PCI addresses
	size_t n;
};

// -ENOMEM only: a machine without graphics is normal. *ret_cards is always valid.
int drm_cards_find(const struct wattle_env *env, uint32_t vendor, struct drm_cards *ret_cards);
void drm_cards_finish(struct drm_cards *cards);
// Looks for a card that went away, by its PCI address (by name where it has none): it may have got another number and
// another hwmon. False, and untouched, if it is not there.
bool drm_cards_find_again(const struct wattle_env *env, struct drm_card *card);
// Whether it is one of those that wattle numbers: of a driver it knows, and not inside of a CPU whose RAPL meters it.
bool drm_card_is_gpu(const struct drm_card *card);
// Intel's, inside of a CPU.
bool drm_card_is_integrated(const struct drm_card *card);
// For people: the name as the board's maker stored it, which few have; else "AMD GPU 1002:744c at 0000:03:00.0".
void drm_card_describe(const struct wattle_env *env, const struct drm_card *card, char *out, size_t size);
// Whether a failed reading means that the card is no longer there.
bool drm_is_gone(int code);

/* Whether a graphics card may be read now, and what to tell of one that may not. */

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
