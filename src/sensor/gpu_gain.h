/* Calibration of GPU power sensors: the ratio of true power, as an external meter measures it, to their readings.
 *
 * The assumed error of an uncalibrated sensor is ± 10 % (95 % limits). Source: "Part-time power measurements: nvidia-smi's
 * lack of attention" (SC'24, arXiv 2312.02741): traces of a 3090, 4090, A100, A5000 and K40m beside an external meter.
 * Integrated NVML power was 8 % too low to 3 % too high, and constant for each card; the paper shows a gain and an offset
 * that differ from card to card. NVIDIA states ± 5 %. Of 160 windows of these traces ± 10 % held 95.6 %. The energy counter
 * of a GPU integrates the same sensor, so it has the same gain. No such trace of AMD's or Intel's cards is published; the
 * same figure is assumed for them.
 *
 * A calibration is a factor for one GPU and its error. It comes from --gpu-gain, else from the file gpu-gain in the state
 * folder, which `wattle sensors --calibrate-gpu` writes:
 *
 *	wattle-gpu-gain/1
 *	UUID FACTOR PERCENT DATE			one line per GPU; FACTOR ± PERCENT % */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "sensor/sensor.h"

#include <stddef.h>

#define GPU_GAIN_ASSUMED_ERROR 0.10
#define GPU_GAIN_MIN 0.5 // factors of a working sensor lie between these limits
#define GPU_GAIN_MAX 2.0
#define GPU_GAIN_ERROR_MIN 0.001
#define GPU_GAIN_ERROR_MAX 0.5

struct gpu_gain {
	char uuid[96], date[32]; // for a stored calibration; date RFC 3339, UTC
	int index;               // index from an option; else -1
	double factor, error;    // error: relative, half of a 95 % interval
};

enum { GPU_GAINS_MAX = 512 };
struct gpu_gains {           // stored calibrations
	struct gpu_gain *at; // owned
	size_t n;
};

/* Parses "INDEX=FACTOR±PERCENT"; the sign may also be +- or +/-, and a % may follow. Without PERCENT the factor is applied
 * and the error stays that of an uncalibrated sensor. Returns -EINVAL with a message. */
int gpu_gain_parse(const char *text, struct gpu_gain *ret_gain, struct wattle_error *reterr);

/* Parses "VALUE±ERROR" with the signs above; without a sign *ret_error is unchanged. Returns false if these are not two
 * numbers. */
bool gpu_gain_split(const char *text, double *ret_value, double *ret_error);

// Path of the stored calibrations. Returns false if it does not fit.
bool gpu_gain_path(const struct wattle_env *env, char *ret_path, size_t size);
// Returns -ENOENT if none are stored, -EINVAL with a message if the file is damaged. *ret_gains is always valid.
int gpu_gain_load(const struct wattle_env *env, struct gpu_gains *ret_gains, struct wattle_error *reterr);
void gpu_gains_finish(struct gpu_gains *gains);
/* Replaces the entry of the same UUID and keeps the others. The folder must exist. A file that is unreadable or full is left
 * unchanged: returns a negative errno with a message. */
int gpu_gain_store(const struct wattle_env *env, const struct gpu_gain *gain, struct wattle_error *reterr);

/* Assigns calibrations to the used GPUs of an open set; options (NULL-terminated, may be NULL) override stored ones. Returns
 * -EINVAL if an option names no measured GPU. If the file cannot be used, ret_note has the reason, else "". */
int gpu_gain_apply(struct sensor_set *set, const struct wattle_env *env, const char *const *options, char *ret_note,
	size_t size, struct wattle_error *reterr);
