/* Temperature of CPU packages: hwmon coretemp ("Package id N"), k10temp and zenpower (Tdie, else Tctl), thermal zones
 * of type x86_pkg_temp and of ARM machines. No sensor of its own: it fills DEVICE_TEMPERATURE of package domains that
 * another sensor meters. */
#pragma once

#include "base/env.h"
#include "base/util.h"
#include "sensor/sensor.h"

struct cpu_temperature;

// NULL if there is nothing to read (or no memory). Files are kept open.
struct cpu_temperature *cpu_temperature_open(const struct wattle_env *env);
void cpu_temperature_close(struct cpu_temperature *temperature);
// Degrees Celsius of socket `index` (domain.index of a package; -1: the hottest), VALUE_MISSING if it could not be read.
// A value is kept for 100 ms.
int64_t cpu_temperature_read(struct cpu_temperature *temperature, int index);
