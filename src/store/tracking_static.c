#include "store/tracking_static.h"

#include "base/util.h"

static struct tracking_static integer(const char *name, int64_t value)
{
	return (struct tracking_static){.name = name, .number = value_to_double(value, 1), .is_integer = true};
}

void tracking_statics(const struct tracking_facts *facts, struct tracking_static ret_fields[TRACKING_STATICS])
{
	const struct tracking_static fields[TRACKING_STATICS] = {
		{.name = "ram_unit", .text = facts->ram_unit},
		{.name = "gpu_ram_unit", .text = facts->gpu_ram_unit},
		{.name = "time_unit", .text = facts->time_unit},
		{.name = "ram_system_capacity", .number = facts->ram_system_capacity},
		{.name = "gpu_ram_system_capacity", .number = facts->gpu_ram_system_capacity},
		integer("system_core_count", facts->system_core_count),
		integer("n_expected_cores", facts->n_expected_cores),
		integer("system_gpu_count", facts->system_gpu_count),
		integer("n_expected_gpus", facts->n_expected_gpus),
	};
	memcpy(ret_fields, fields, sizeof(fields));
}
