#include "sensor/sensor.h"

// In order of preference: when two meter one domain, the earlier one is sampled.
const struct sensor_ops *const sensor_registry[] = {
	&sensor_powercap,
	&sensor_perf,
	&sensor_hwmon,
	&sensor_nvml,
	&sensor_amdgpu,
	&sensor_intel_gpu,
	&sensor_cray, // after all GPU sensors, which know more of a GPU than its joules
	&sensor_battery,
	&sensor_wall,
	&sensor_model, // only where no package can be read
	NULL,
};
