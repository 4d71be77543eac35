#include "sensor/sensor.h"

// In order of preference: when two meter one domain, the earlier one is sampled.
const struct sensor_ops *const sensor_registry[] = {
	&sensor_powercap,
	&sensor_nvml,
	&sensor_model, // only where no package can be read
	NULL,
};
