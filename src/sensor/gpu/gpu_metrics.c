#include "sensor/gpu/drm.h"

#include "base/util.h"

#include <errno.h>

/* Offsets as in struct gpu_metrics_v*_* of the kernel's kgd_pp_interface.h, natural alignment. The revisions do not extend
 * each other, and one number was used twice: v1.6 (Linux 6.9, later withdrawn) was at first v1.5 with some extra fields, so
 * its size must be checked. v1.7 and v1.8 have eight bytes of memory bandwidth before the accumulator. A v1.7 table too small
 * for that is treated as v1.6 under another number.
 *
 * Power is in W. In v2.x it is in mW on most APUs and in W on some Renoir, and the table does not show which. It is therefore
 * ignored: hwmon has it too. */
static const struct layout {
	uint8_t format, first_content, last_content;
	uint16_t size_min;                                // of the table
	uint16_t temperature, power, energy, gfx, memory; // offsets
	uint8_t energy_size;
} layouts[] = {
	{1, 0, 0, 0, .temperature = 16, .power = 34, .energy = 36, .gfx = 28, .memory = 30, .energy_size = 4},
	{1, 1, 3, 0, .temperature = 4, .power = 22, .energy = 24, .gfx = 16, .memory = 18, .energy_size = 8},
	{1, 4, 4, 0, .temperature = 4, .power = 10, .energy = 24, .gfx = 12, .memory = 14, .energy_size = 8},
	{1, 5, 5, 0, .temperature = 4, .power = 10, .energy = 88, .gfx = 12, .memory = 14, .energy_size = 8},
	{1, 6, 6, 1024, .temperature = 4, .power = 10, .energy = 16, .gfx = 12, .memory = 14, .energy_size = 8},
	{1, 6, 6, 0, .temperature = 4, .power = 10, .energy = 88, .gfx = 12, .memory = 14, .energy_size = 8},
	{1, 7, 8, 2208, .temperature = 4, .power = 10, .energy = 24, .gfx = 12, .memory = 14, .energy_size = 8},
	{1, 7, 8, 0, .temperature = 4, .power = 10, .energy = 16, .gfx = 12, .memory = 14, .energy_size = 8},
};
enum { HEADER_SIZE = 4, APU_FORMAT_MIN = 2, APU_FORMAT_MAX = 3 };

struct table {
	const unsigned char *bytes;
	size_t size;
};

// Reads a field of 2, 4 or 8 bytes; VALUE_MISSING if it lies beyond the end of the table or is not filled (all bits set).
static int64_t field(const struct table *table, size_t offset, size_t size)
{
	uint64_t value = 0;
	if (offset + size > table->size)
		return VALUE_MISSING;
	memcpy(&value, table->bytes + offset, size); // every machine with amdgpu is little-endian
	bool filled = value != UINT64_MAX >> (64 - 8 * size);
	return filled && value <= INT64_MAX ? (int64_t)value : VALUE_MISSING;
}

static int64_t scaled(int64_t value, int64_t factor)
{
	return value_ok(value) ? value * factor : VALUE_MISSING;
}

static const struct layout *find_layout(uint8_t format, uint8_t content, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct layout *l = &layouts[i];
		bool revision = l->format == format && l->first_content <= content && content <= l->last_content;
		if (revision && size >= l->size_min)
			return l;
	}
	return NULL;
}

static struct gpu_metrics nothing(void)
{
	return (struct gpu_metrics){
		.energy_units = VALUE_MISSING,
		.power_mw = VALUE_MISSING,
		.temperature_c = VALUE_MISSING,
		.gfx_percent = VALUE_MISSING,
		.memory_percent = VALUE_MISSING,
	};
}

int gpu_metrics_parse(const void *bytes, size_t size, struct gpu_metrics *ret_metrics)
{
	struct table table = {.bytes = bytes, .size = size};
	uint16_t stated;
	if (size < HEADER_SIZE)
		return -EINVAL;
	memcpy(&stated, table.bytes, sizeof(stated));
	if (stated < HEADER_SIZE || stated > size)
		return -EINVAL;
	table.size = stated;
	uint8_t format = table.bytes[2], content = table.bytes[3];
	const struct layout *layout = find_layout(format, content, stated);
	struct gpu_metrics metrics = nothing();
	metrics.is_apu = format >= APU_FORMAT_MIN && format <= APU_FORMAT_MAX;
	if (layout == NULL && !metrics.is_apu)
		return -EINVAL;
	if (layout != NULL) {
		metrics.energy_units = field(&table, layout->energy, layout->energy_size);
		if (metrics.energy_units > GPU_ENERGY_UNITS_MAX)
			metrics.energy_units = VALUE_MISSING;
		metrics.power_mw = scaled(field(&table, layout->power, 2), 1000);
		metrics.temperature_c = field(&table, layout->temperature, 2);
		metrics.gfx_percent = field(&table, layout->gfx, 2);
		metrics.memory_percent = field(&table, layout->memory, 2);
	}
	*ret_metrics = metrics;
	return 0;
}
