#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <string.h>

#define MISSING VALUE_MISSING

/* Tables are filled with 0xff, as the driver does, then fields are set: {offset, bytes, value}. */
struct field {
	size_t offset, size;
	uint64_t value;
};

static const struct row {
	const char *teaches;
	uint16_t size;
	uint8_t format, content;
	struct field fields[6];
	int64_t energy_units, power_mw, temperature_c, gfx_percent;
	bool is_apu;
} rows[] = {
	{"v1.0: an accumulator of 32 bits", 96, 1, 0, {{36, 4, 77}, {34, 2, 30}, {16, 2, 41}, {28, 2, 5}}, 77, 30000,
		41, 5},
	{"v1.0: all 32 bits set: missing", 96, 1, 0, {{34, 2, 30}}, MISSING, 30000, MISSING, MISSING},
	{"v1.1", 96, 1, 1, {{24, 8, UINT64_C(1) << 40}, {22, 2, 301}, {4, 2, 61}, {16, 2, 99}}, INT64_C(1) << 40,
		301000, 61, 99},
	{"v1.3, of the RX 7900", 120, 1, 3, {{24, 8, 123456789}, {22, 2, 25}, {4, 2, 45}, {16, 2, 0}}, 123456789, 25000,
		45, 0},
	{"v1.4, of the MI300: hotspot in place of the edge temperature", 288, 1, 4,
		{{24, 8, 5}, {10, 2, 750}, {4, 2, 70}, {12, 2, 100}}, 5, 750000, 70, 100},
	{"v1.5: 32 JPEG engines before the accumulator", 360, 1, 5, {{88, 8, 5}, {10, 2, 750}, {4, 2, 70}, {12, 2, 1}},
		5, 750000, 70, 1},
	{"v1.6: the accumulator comes first", 1664, 1, 6, {{16, 8, 6}, {10, 2, 140}, {88, 8, 9}}, 6, 140000, MISSING,
		MISSING},
	{"v1.6 of an early kernel, recognised by its size", 384, 1, 6, {{16, 8, 6}, {10, 2, 140}, {88, 8, 9}}, 9,
		140000, MISSING, MISSING},
	{"v1.7: after the bandwidth of the memory", 2208, 1, 7, {{16, 8, 5325}, {24, 8, 7}, {10, 2, 140}}, 7, 140000,
		MISSING, MISSING},
	{"v1.8 likewise", 3872, 1, 8, {{16, 8, 5325}, {24, 8, 8}}, 8, MISSING, MISSING, MISSING},
	{"field with all bits set: missing", 120, 1, 3, {{24, 8, UINT64_MAX}, {22, 2, 0xffff}}, MISSING, MISSING,
		MISSING, MISSING},
	{"0 is a valid value", 120, 1, 3, {{24, 8, 0}, {22, 2, 0}}, 0, 0, MISSING, MISSING},
	{"v2.x, of an APU: no energy, power in another unit", 128, 2, 2, {{40, 2, 15000}}, MISSING, MISSING, MISSING,
		MISSING, true},
	{"v3.0 likewise", 264, 3, 0, {{112, 4, 15000}}, MISSING, MISSING, MISSING, MISSING, true},
	{"table that ends before the accumulator", 20, 1, 3, {{4, 2, 45}}, MISSING, MISSING, 45, MISSING},
};

static void put(unsigned char *bytes, struct field field)
{
	memcpy(bytes + field.offset, &field.value, field.size);
}

static void make(unsigned char bytes[GPU_METRICS_SIZE_MAX], const struct row *row)
{
	memset(bytes, 0xff, GPU_METRICS_SIZE_MAX);
	put(bytes, (struct field){0, 2, row->size});
	put(bytes, (struct field){2, 1, row->format});
	put(bytes, (struct field){3, 1, row->content});
	for (size_t i = 0; i < ARRAY_SIZE(row->fields) && row->fields[i].size > 0; i++)
		put(bytes, row->fields[i]);
}

static void check(void **state)
{
	const struct row *row = *state;
	unsigned char bytes[GPU_METRICS_SIZE_MAX];
	struct gpu_metrics metrics;
	make(bytes, row);
	assert_int_equal(gpu_metrics_parse(bytes, row->size, &metrics), 0);
	assert_int_equal(metrics.energy_units, row->energy_units);
	assert_int_equal(metrics.power_mw, row->power_mw);
	assert_int_equal(metrics.temperature_c, row->temperature_c);
	assert_int_equal(metrics.gfx_percent, row->gfx_percent);
	assert_int_equal(metrics.is_apu, row->is_apu);
}

static const struct refused_row {
	const char *teaches;
	const char *bytes;
	size_t size;
} refused_rows[] = {
	{"refused: nothing", "", 0},
	{"refused: half a header", "\x78\x00\x01", 3},
	{"refused: a size of 0", "\x00\x00\x01\x03", 4},
	{"refused: shorter than its header states", "\x78\x00\x01\x03 and no more", 16},
	{"refused: v1.9, a self-describing list", "\x08\x00\x01\x09\x00\x00\x00\x00", 8},
	{"refused: v9.0", "\x08\x00\x09\x00\x00\x00\x00\x00", 8},
	{"refused: text", "N/A\n", 4},
};

static void check_refused(void **state)
{
	const struct refused_row *row = *state;
	struct gpu_metrics metrics;
	assert_int_equal(gpu_metrics_parse(row->bytes, row->size, &metrics), -EINVAL);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, refused_rows, check_refused);
	return rows_run(&tests, "gpu_metrics");
}
