/* The variables by which a program is shown some GPUs only, as CUDA and ROCm read them. */
#pragma once

#include "sensor/sensor.h"

// Fills the members of *options that hold them; borrowed from the environment, which set-uid programs ignore.
void gpu_environment(struct sensor_options *options);
