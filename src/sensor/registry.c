#include "sensor/sensor.h"

// In order of preference: if two sensors meter one domain, the earlier one is sampled.
const struct sensor_ops *const sensor_registry[] = {
	&sensor_powercap,
	&sensor_perf,
	&sensor_hwmon,
	&sensor_nvml,
	&sensor_amdgpu,
	&sensor_intel_gpu,
	&sensor_cray, // after all GPU sensors, which report more about a GPU than energy
	&sensor_battery,
	&sensor_wall,
	&sensor_model, // only if no package can be read
	NULL,
};
