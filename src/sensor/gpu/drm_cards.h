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
	char hwmon[80];  // e.g. "class/drm/card0/device/hwmon/hwmon3"; "" if there is none
	char pci[24];    // "0000:43:00.0"; "" if unknown
	char driver[24]; // "amdgpu"; "" if unknown
	uint32_t vendor, product;
};

struct drm_cards {
	struct drm_card *cards; // owned; in PCI address order
	size_t n;
};

// Fails with -ENOMEM only: a machine without graphics is normal. *ret_cards is always valid.
int drm_cards_find(const struct wattle_env *env, uint32_t vendor, struct drm_cards *ret_cards);
void drm_cards_finish(struct drm_cards *cards);
// Searches for a lost card by PCI address, or by name if it has none: its number and hwmon may have changed. Returns false,
// leaving `card` untouched, if it is absent.
bool drm_cards_find_again(const struct wattle_env *env, struct drm_card *card);
// Whether wattle numbers the card as a GPU: its driver is known, and it is not inside a CPU that RAPL meters.
bool drm_card_is_gpu(const struct drm_card *card);
// Whether the card is an Intel GPU inside a CPU.
bool drm_card_is_integrated(const struct drm_card *card);
// Label for reports: the name stored by the board's maker, which few boards have; else "AMD GPU 1002:744c at 0000:03:00.0".
void drm_card_describe(const struct wattle_env *env, const struct drm_card *card, char *out, size_t size);
// Whether the error code of a failed reading means that the card is gone.
bool drm_is_gone(int code);

/* Runtime power state of a graphics card, and the note for a card that can't be read now. */

struct drm_power {
	struct file_kept status; // path is "" if the kernel has no runtime power management
};

// device: folder of the card, relative to /sys.
void drm_power_open(struct drm_power *power, const struct wattle_env *env, const char *device);
void drm_power_close(struct drm_power *power);
// True if the card is runtime suspended, as laptop GPUs often are: reading any other of its files would wake it.
bool drm_power_sleeps(struct drm_power *power);

enum drm_state { DRM_AWAKE, DRM_ASLEEP, DRM_GONE };

// Maintains domain->note: sets it for a card that sleeps or is gone, and clears it when the card is available again.
void drm_state_describe(struct domain *domain, enum drm_state state);
