#include "sensor/cpu_temperature.h"

#include <stddef.h>

struct cpu_temperature *cpu_temperature_open(const struct wattle_env *env)
{
	return NULL;
}

void cpu_temperature_close(struct cpu_temperature *temperature)
{
}

int64_t cpu_temperature_read(struct cpu_temperature *temperature, int index)
{
	return VALUE_MISSING;
}
