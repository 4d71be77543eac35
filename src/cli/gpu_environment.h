/* The variables by which a program is shown some GPUs only. */
#pragma once

#include "sensor/sensor.h"

// Fills the members of *options that hold them; borrowed from the environment.
void gpu_environment(struct sensor_options *options);
