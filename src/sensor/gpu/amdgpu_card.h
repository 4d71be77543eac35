/* One GPU behind the amdgpu driver: what it is, and one reading of everything that /sys tells of it. */
#pragma once

#include "base/file.h"
#include "sensor/gauge.h"
#include "sensor/gpu/drm_cards.h"
#include "sensor/gpu/drm_state.h"
#include "sensor/gpu/gpu_accumulator.h"
#include "sensor/gpu/gpu_metrics.h"
#include "sensor/gpu/rocm_smi.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { AMDGPU_GAUGES = 8 };

struct amdgpu_card {
	struct drm_card found;
	const struct wattle_env *env; // borrowed
	struct drm_power power;
	struct file_kept metrics;
	struct gauge_file gauges[AMDGPU_GAUGES];
	struct gpu_accumulator accumulator;
	bool is_open;
	bool is_apu;
	const struct rocm_smi *smi; // borrowed; NULL: the driver's files have all
	size_t smi_gpu;             // its number there
	bool counts_energy;         // the accumulator is there and was not found standing still
	bool has_power;             // some power reading is there
};

// Fills card and domain, but for the domain's name and number. Its `used` says that there is something to read. A card
// without a folder in /sys (found->device "") has only what the library tells.
void amdgpu_card_open(struct amdgpu_card *card, const struct wattle_env *env, const struct drm_card *found,
	struct domain *domain);
void amdgpu_card_close(struct amdgpu_card *card);
// Whether the driver's files lack energy or power, as far as can be told without waking it.
bool amdgpu_card_lacks_figures(const struct amdgpu_card *card);
// Takes what the files lack from the library.
void amdgpu_card_assist(struct amdgpu_card *card, const struct rocm_smi *smi, size_t gpu, struct domain *domain);
// Looks for the card again, after it vanished: under another name, with another hwmon.
void amdgpu_card_find_again(struct amdgpu_card *card);

// The accumulator now, in 2^-16 J; VALUE_MISSING if there is none or it can't be read.
int64_t amdgpu_card_units(struct amdgpu_card *card);
// One reading. 0, -EAGAIN for a card that sleeps, -ENODEV for one that is gone.
int amdgpu_card_read(struct amdgpu_card *card, const struct sensor_context *context, int64_t *row);
