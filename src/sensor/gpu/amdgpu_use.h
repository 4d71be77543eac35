/* Who uses an AMD GPU: what fdinfo and KFD tell, put together. Pure: from figures to a row. */
#pragma once

#include "sensor/gpu/drm_clients.h"
#include "sensor/gpu/kfd.h"
#include "sensor/sensor.h"

/* Fills TARGET_ and OTHERS_UTILIZATION, MAIN_, TARGET_ and OTHERS_MEMORY, TARGET_ and OTHERS_PROCESSES from what the row has
 * of the whole GPU. kfd NULL: this GPU has none. */
void amdgpu_use_fill(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row);
