#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"

#define MISSING VALUE_MISSING

static const struct row {
	const char *teaches, *text;
	bool is_graphics;
	const char *pdev;
	uint64_t client;
	struct drm_engine_use render, compute;
	int64_t memory_bytes;
} rows[] = {
	{"amdgpu of Linux 6.1",
		"pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t1062\ndrm-driver:\tamdgpu\npasid:\t32774\n"
		"drm-pdev:\t0000:43:00.0\ndrm-client-id:\t9\ndrm-memory-vram:\t1024 KiB\ndrm-memory-gtt: \t2048 KiB\n"
		"drm-memory-cpu: \t0 KiB\ndrm-engine-gfx:\t1234567 ns\ndrm-engine-dec:\t99 ns\n",
		true, "0000:43:00.0", 9, {1234567, MISSING, 1}, {MISSING, MISSING, 1}, 1048576},
	{"amdgpu of Linux 6.8: resident memory is used",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 1\ndrm-total-vram: 9 MiB\n"
		"drm-memory-vram: 8 MiB\ndrm-resident-vram: 7 MiB\ndrm-engine-compute: 5 ns\n",
		true, "0000:03:00.0", 1, {MISSING, MISSING, 1}, {5, MISSING, 1}, 7 << 20},
	{"i915: engines of one class run in parallel",
		"drm-pdev:\t0000:03:00.0\ndrm-client-id:\t7\ndrm-engine-render:\t10 ns\n"
		"drm-engine-copy:\t99 ns\ndrm-engine-compute:\t40 ns\ndrm-engine-capacity-compute:\t4\n"
		"drm-resident-local0:\t1 GiB\ndrm-resident-system0:\t5 GiB\n",
		true, "0000:03:00.0", 7, {10, MISSING, 1}, {40, MISSING, 4}, 1 << 30},
	{"xe: ratio of two cycle counts",
		"drm-pdev:\t0000:03:00.0\ndrm-client-id:\t7\ndrm-cycles-rcs:\t28\ndrm-total-cycles-rcs:\t280\n"
		"drm-cycles-ccs:\t3\ndrm-total-cycles-ccs:\t281\ndrm-resident-vram0:\t0\n",
		true, "0000:03:00.0", 7, {28, 280, 1}, {3, 281, 1}, 0},
	{"two tiles have two regions",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 7\ndrm-resident-vram0: 1 KiB\n"
		"drm-resident-vram1: 2 KiB\n",
		true, "0000:03:00.0", 7, {MISSING, MISSING, 1}, {MISSING, MISSING, 1}, 3072},
	{"capacity of 0: one engine", "drm-pdev: 0000:03:00.0\ndrm-client-id: 7\ndrm-engine-capacity-gfx: 0\n",
		true, "0000:03:00.0", 7, {MISSING, MISSING, 1}, {MISSING, MISSING, 1}, MISSING},
	{"invalid number: missing",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 7\ndrm-engine-gfx: -5 ns\n"
		"drm-memory-vram: 99999999999999999999 KiB\n",
		true, "0000:03:00.0", 7, {MISSING, MISSING, 1}, {MISSING, MISSING, 1}, MISSING},
	{"size beyond 63 bits: missing",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 7\ndrm-memory-vram: 9223372036854775807 KiB\n", true,
		"0000:03:00.0", 7, {MISSING, MISSING, 1}, {MISSING, MISSING, 1}, MISSING},
	{"file that is no graphics device", "pos:\t0\nflags:\t0100002\nmnt_id:\t29\n", false},
	{"kernel before 5.19: no client data", "drm-driver:\tamdgpu\nfdinfo-pdev: 1\n", false},
	{"empty file", "", false},
};

static void assert_engine(const struct drm_engine_use *engine, const struct drm_engine_use *expected)
{
	assert_int_equal(engine->busy, expected->busy);
	assert_int_equal(engine->cycles, expected->cycles);
	assert_int_equal(engine->capacity, expected->capacity);
}

static void check(void **state)
{
	const struct row *row = *state;
	char text[1024];
	struct drm_fdinfo info;
	text_copy(text, sizeof(text), row->text);
	assert_int_equal(drm_fdinfo_parse(text, &info), row->is_graphics);
	if (!row->is_graphics)
		return;
	assert_string_equal(info.pdev, row->pdev);
	assert_int_equal(info.client, row->client);
	assert_engine(&info.engines[DRM_RENDER], &row->render);
	assert_engine(&info.engines[DRM_COMPUTE], &row->compute);
	assert_int_equal(info.memory_bytes, row->memory_bytes);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "drm_fdinfo");
}
