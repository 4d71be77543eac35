#include "sensor/gpu_gain.h"

#include "base/util.h"
#include "rows.h"
#include "tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- --gpu-gain ---- */

static const struct option_row {
	const char *teaches, *text;
	const char *refused; // part of the message; NULL: accepted
	int index;
	double factor, error;
} options[] = {
	{"factor and error", "0=1.03±2", NULL, 0, 1.03, 0.02},
	{"factor+-error", "0=1.03+-2", NULL, 0, 1.03, 0.02},
	{"factor+/-error with a percent sign", "3=0.9+/-1.5 %", NULL, 3, 0.9, 0.015},
	{"factor without an error: the error of uncalibrated GPUs stays", "1=1.05", NULL, 1, 1.05, 0.10},
	{"no index", "1.03±2", "give INDEX=FACTOR±PERCENT", 0, 0, 0},
	{"negative index: refused", "-1=1.03±2", "is not valid", 0, 0, 0},
	{"name in place of an index: refused", "gpu-0=1.03±2", "is not valid", 0, 0, 0},
	{"no factor", "0=", "is not valid", 0, 0, 0},
	{"no number", "0=big±2", "is not valid", 0, 0, 0},
	{"sign without an error: refused", "0=1.03±", "is not valid", 0, 0, 0},
	{"trailing text: refused", "0=1.03±2x", "is not valid", 0, 0, 0},
	{"factor of NaN: refused", "0=nan±2", "is not valid", 0, 0, 0},
	{"infinite", "0=1e999±2", "is not valid", 0, 0, 0},
	{"factor of 0: refused", "0=0±2", "out of range", 0, 0, 0},
	{"negative factor: refused", "0=-1.03±2", "out of range", 0, 0, 0},
	{"factor of 3: refused, no working sensor is that far off", "0=3±2", "FACTOR must be from 0.5 to 2", 0, 0, 0},
	{"error of 0: refused, no meter is that good", "0=1.03±0", "PERCENT from 0.1 to 50", 0, 0, 0},
	{"negative error: refused", "0=1.03±-2", "out of range", 0, 0, 0},
	{"error of 60 %: refused", "0=1.03±60", "out of range", 0, 0, 0},
};

static void parses(void **state)
{
	const struct option_row *row = *state;
	struct gpu_gain gain;
	struct wattle_error error = {0};
	int r = gpu_gain_parse(row->text, &gain, &error);
	if (row->refused != NULL) {
		assert_int_equal(r, -EINVAL);
		assert_non_null(strstr(error.text, "--gpu-gain"));
		if (strstr(error.text, row->refused) == NULL)
			fail_msg("%s", error.text);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(gain.index, row->index);
	assert_true(gain.factor == row->factor && fabs(gain.error - row->error) < 1e-12);
}

/* ---- the file, and the domains ---- */

struct world {
	struct tree tree;
	struct wattle_env env;
	struct domain domains[3];
	const struct domain *devices[3];
	struct sensor_calibration calibrations[3];
	struct sensor_set set;
	char note[400];
};

static void world_make(struct world *w)
{
	*w = (struct world){.domains = {{.name = "package-0", .kind = DOMAIN_PACKAGE},
				    {.name = "gpu-0", .kind = DOMAIN_GPU, .uuid = "GPU-a"},
				    {.name = "gpu-1", .kind = DOMAIN_GPU, .index = 1, .uuid = "GPU-b"}}};
	tree_make(&w->tree);
	text_copy(w->env.state_dir, sizeof(w->env.state_dir), w->tree.root);
	for (size_t i = 0; i < ARRAY_SIZE(w->devices); i++) {
		w->domains[i].calibration = &w->calibrations[i];
		w->devices[i] = &w->domains[i];
	}
	w->set = (struct sensor_set){.devices = w->devices,
		.n_devices = ARRAY_SIZE(w->devices),
		.calibrations = w->calibrations};
}

static void store(struct world *w, const char *uuid, double factor, double error)
{
	struct gpu_gain gain = {.date = "2026-01-31T12:00:00Z", .factor = factor, .error = error};
	text_copy(gain.uuid, sizeof(gain.uuid), uuid);
	assert_int_equal(gpu_gain_store(&w->env, &gain, NULL), 0);
}

static int apply(struct world *w, const char *option, struct wattle_error *reterr)
{
	const char *const list[] = {option, NULL};
	return gpu_gain_apply(&w->set, &w->env, list, w->note, sizeof(w->note), reterr);
}

static void stored_by_uuid(void **state)
{
	struct world w;
	world_make(&w);
	store(&w, "GPU-b", 0.97, 0.03);
	store(&w, "GPU-x", 1.2, 0.03); // now in another machine
	store(&w, "GPU-b", 1.04, 0.02);
	assert_int_equal(apply(&w, NULL, NULL), 0);
	assert_string_equal(w.note, "");
	assert_true(domain_gain(&w.domains[0]) == 1 && domain_gain(&w.domains[1]) == 1);
	assert_true(w.calibrations[2].gain == 1.04 && fabs(w.calibrations[2].error - 0.02) < 1e-12);
	assert_string_equal(w.calibrations[2].source, "wattle sensors --calibrate-gpu 2026-01-31T12:00:00Z");
	tree_finish(&w.tree);
}

static void option_wins(void **state)
{
	struct world w;
	struct wattle_error error = {0};
	world_make(&w);
	store(&w, "GPU-b", 1.04, 0.02);
	assert_int_equal(apply(&w, "1=0.9±5", NULL), 0);
	assert_true(w.calibrations[2].gain == 0.9);
	assert_string_equal(w.calibrations[2].source, "--gpu-gain");
	assert_int_equal(apply(&w, "7=0.9±5", &error), -EINVAL);
	assert_non_null(strstr(error.text, "not measured; measured GPUs: 0, 1"));
	w.set.n_devices = 1;
	assert_int_equal(apply(&w, "0=0.9±5", &error), -EINVAL);
	assert_non_null(strstr(error.text, "no GPU is measured"));
	tree_finish(&w.tree);
}

static const struct damage {
	const char *teaches, *text;
} damages[] = {
	{"empty file: no calibration", ""},
	{"another file", "{\"schema\": \"wattle-idle/1\"}\n"},
	{"truncated line: ignored", "wattle-gpu-gain/1\nGPU-b 1.04\n"},
	{"one field too many: ignored", "wattle-gpu-gain/1\nGPU-b 1.04 2 2026 x\n"},
	{"factor out of range: ignored", "wattle-gpu-gain/1\nGPU-b 1e9 2 2026\n"},
	{"factor that is no number: ignored", "wattle-gpu-gain/1\nGPU-b nan 2 2026\n"},
};

static void damaged(void **state)
{
	const struct damage *row = *state;
	struct world w;
	world_make(&w);
	tree_write(&w.tree, "gpu-gain", row->text);
	assert_int_equal(apply(&w, NULL, NULL), 0);
	assert_non_null(strstr(w.note, "is not used: the file is damaged"));
	assert_true(domain_gain(&w.domains[2]) == 1);
	struct gpu_gain gain = {.uuid = "GPU-b", .date = "2026", .factor = 1.04, .error = 0.02};
	struct wattle_error error = {0};
	assert_int_equal(gpu_gain_store(&w.env, &gain, &error), -EINVAL);
	assert_non_null(strstr(error.text, "can't store the calibration"));
	w.note[0] = '\0';
	assert_int_equal(apply(&w, NULL, NULL), 0);
	assert_non_null(strstr(w.note, "the file is damaged")); // it still exists
	tree_finish(&w.tree);
}

static void full(void **state)
{
	(void)state;
	struct world w;
	struct gpu_gains stored;
	struct wattle_error error = {0};
	struct gpu_gain gain = {.uuid = "GPU-new", .date = "2026", .factor = 1.04, .error = 0.02};
	world_make(&w);
	for (int i = 0; i < GPU_GAINS_MAX; i++) {
		char uuid[96];
		snprintf(uuid, sizeof(uuid), "GPU-%08d-0123-4567-89ab-0123456789ab", i);
		store(&w, uuid, 1.04, 0.02);
	}
	assert_int_equal(gpu_gain_store(&w.env, &gain, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "already has 512 GPUs"));
	store(&w, "GPU-00000007-0123-4567-89ab-0123456789ab", 1.1, 0.02);
	assert_int_equal(gpu_gain_load(&w.env, &stored, NULL), 0);
	assert_int_equal(stored.n, GPU_GAINS_MAX);
	assert_true(stored.at[0].factor == 1.1);
	gpu_gains_finish(&stored);
	tree_finish(&w.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, options, parses);
	ROWS_ADD(&tests, damages, damaged);
	ROWS_ADD_ONE(&tests, "stored calibration: applied to the GPU with its UUID, the newest counts", stored_by_uuid);
	ROWS_ADD_ONE(&tests, "--gpu-gain overrides the stored calibration and must name a measured GPU", option_wins);
	ROWS_ADD_ONE(&tests, "512 calibrations are stored, another one is refused, an existing one is replaced", full);
	return rows_run(&tests, "gpu_gain");
}
