/* Calibration of GPU power sensors: how far their readings are from the power that a meter outside measures.
 *
 * An uncalibrated sensor is taken to be right within 10 %, as 95 % limits. Source: "Part-time power measurements:
 * nvidia-smi's lack of attention" (SC'24, arXiv 2312.02741): traces of a 3090, 4090, A100, A5000 and K40m beside an
 * external meter. Integrated NVML power was 8 % too low to 3 % too high, and constant for each card; the paper shows a
 * gain and an offset that differ from card to card. NVIDIA states ± 5 %. Of 160 windows of these traces ± 10 % held 95.6 %.
 * The energy counter of a GPU integrates the same sensor, so it has the same gain. No such trace of AMD's or
 * Intel's cards is published; the same figure is taken for them.
 *
 * A calibration is a factor for one GPU and its error: from --gpu-gain, else from the file gpu-gain in the state folder,
 * which `wattle sensors --calibrate-gpu` writes:
 *
 *	wattle-gpu-gain/1
 *	UUID FACTOR PERCENT DATE			a line a GPU; FACTOR ± PERCENT % */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "sensor/sensor.h"

#include <stddef.h>

#define GPU_GAIN_ASSUMED_ERROR 0.10
#define GPU_GAIN_LEAST 0.5 // what a sensor that works can't be off by
#define GPU_GAIN_MOST 2.0
#define GPU_GAIN_ERROR_LEAST 0.001
#define GPU_GAIN_ERROR_MOST 0.5

struct gpu_gain {
	char uuid[96], date[32]; // of a stored calibration; date RFC 3339, UTC
	int index;               // of an option; -1
	double factor, error;    // error: relative, half of a 95 % interval
};

enum { GPU_GAINS_MAX = 512 };
struct gpu_gains {           // those stored
	struct gpu_gain *at; // owned
	size_t n;
};

/* "INDEX=FACTOR±PERCENT", the sign also as +- or +/-, a % behind it or none. Without PERCENT the factor is applied and
 * the error stays that of an uncalibrated sensor. -EINVAL with a sentence. */
int gpu_gain_parse(const char *text, struct gpu_gain *ret_gain, struct wattle_error *reterr);

/* "VALUE±ERROR", the signs as above; without a sign *ret_error stays. False: not two numbers. */
bool gpu_gain_split(const char *text, double *ret_value, double *ret_error);

// Where the stored ones are. False if the path does not fit.
bool gpu_gain_path(const struct wattle_env *env, char *ret_path, size_t size);
// -ENOENT: none are stored; -EINVAL with a sentence: the file is damaged. *ret_gains is always valid.
int gpu_gain_load(const struct wattle_env *env, struct gpu_gains *ret_gains, struct wattle_error *reterr);
void gpu_gains_finish(struct gpu_gains *gains);
/* Replaces the entry of the same UUID, keeps the others. The folder must exist. A file that can't be read, and one that is
 * full, stays as it is: a negative errno with a sentence. */
int gpu_gain_store(const struct wattle_env *env, const struct gpu_gain *gain, struct wattle_error *reterr);

/* Gives the used GPUs of an open set their calibration; options (NULL-terminated, may be NULL) before the stored ones.
 * -EINVAL: an option names no measured GPU. A file that cannot be used leaves a sentence in ret_note, "" else. */
int gpu_gain_apply(struct sensor_set *set, const struct wattle_env *env, const char *const *options, char *ret_note,
	size_t size, struct wattle_error *reterr);
