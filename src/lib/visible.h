/* The GPUs that the calling program may use, as CUDA and ROCm read its environment. */
#pragma once

#include "sensor/sensor.h"

#include <stdbool.h>

// Fills in the members that the environment decides; in set-uid programs it is not looked at. Borrowed from it.
void visible_gpus(struct sensor_options *options);

// WATTLE_DISABLE=1: every call is a no-op that succeeds.
bool is_disabled_by_environment(void);
