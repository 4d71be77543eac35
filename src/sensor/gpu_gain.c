#include "sensor/gpu_gain.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header[] = "wattle-gpu-gain/1";
enum { FILE_CEILING = 1 << 17, PATH_SIZE = 600 }; // 512 lines of at most 150 bytes

static bool is_plausible(const struct gpu_gain *gain)
{
	return gain->factor >= GPU_GAIN_MIN && gain->factor <= GPU_GAIN_MAX && gain->error >= GPU_GAIN_ERROR_MIN &&
		gain->error <= GPU_GAIN_ERROR_MAX;
}

/* ---- options ---- */

// Splits the text at the first plus or minus sign; returns the second part or NULL.
static char *split_at_sign(char *text)
{
	static const char *const signs[] = {"±", "+/-", "+-"};
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		char *at = strstr(text, signs[i]);
		if (at == NULL)
			continue;
		*at = '\0';
		return at + strlen(signs[i]);
	}
	return NULL;
}

static void drop_percent_sign(char *text)
{
	size_t n = strlen(text);
	if (n > 0 && text[n - 1] == '%')
		text[--n] = '\0';
	if (n > 0 && text[n - 1] == ' ')
		text[n - 1] = '\0';
}

bool gpu_gain_split(const char *text, double *ret_value, double *ret_error)
{
	char copy[96];
	if (!text_copy(copy, sizeof(copy), text))
		return false;
	char *error = split_at_sign(copy);
	if (error != NULL)
		drop_percent_sign(error);
	return num_parse_double(copy, ret_value) == 0 && (error == NULL || num_parse_double(error, ret_error) == 0);
}

static bool parse(char *text, struct gpu_gain *gain)
{
	uint64_t index;
	double percent = GPU_GAIN_ASSUMED_ERROR * 100;
	char *equals = strchr(text, '=');
	if (equals == NULL)
		return false;
	*equals = '\0';
	if (num_parse_u64(text, &index) < 0 || index > INT32_MAX ||
		!gpu_gain_split(equals + 1, &gain->factor, &percent))
		return false;
	gain->index = (int)index;
	gain->error = percent / 100;
	return true;
}

int gpu_gain_parse(const char *text, struct gpu_gain *ret_gain, struct wattle_error *reterr)
{
	char copy[96];
	struct gpu_gain gain = {.index = -1};
	if (!text_copy(copy, sizeof(copy), text) || !parse(copy, &gain))
		return error_set(reterr, -EINVAL,
			"--gpu-gain: '%.60s' is not valid; give INDEX=FACTOR±PERCENT, such as 0=1.03±2 or 0=1.03+-2",
			text);
	if (!is_plausible(&gain))
		return error_set(reterr, -EINVAL,
			"--gpu-gain: '%.60s' is out of range; FACTOR must be from 0.5 to 2, PERCENT from 0.1 to 50",
			text);
	*ret_gain = gain;
	return 0;
}

/* ---- the file ---- */

bool gpu_gain_path(const struct wattle_env *env, char *ret_path, size_t size)
{
	int length = snprintf(ret_path, size, "%s/gpu-gain", env->state_dir);
	return length > 0 && (size_t)length < size;
}

static bool parse_line(char *line, struct gpu_gain *gain)
{
	char *save = NULL, *fields[4];
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if ((fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save)) == NULL)
			return false;
	*gain = (struct gpu_gain){.index = -1};
	if (strtok_r(NULL, " ", &save) != NULL || !text_copy(gain->uuid, sizeof(gain->uuid), fields[0]) ||
		num_parse_double(fields[1], &gain->factor) < 0 || num_parse_double(fields[2], &gain->error) < 0 ||
		!text_copy(gain->date, sizeof(gain->date), fields[3]))
		return false;
	gain->error /= 100;
	return is_plausible(gain);
}

static bool parse_file(char *text, struct gpu_gains *gains)
{
	if (strlen(text) == FILE_CEILING - 1) // the file is longer
		return false;
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	if (line == NULL || strcmp(line, header) != 0)
		return false;
	while ((line = strtok_r(NULL, "\n", &save)) != NULL)
		if (gains->n == GPU_GAINS_MAX || !parse_line(line, &gains->at[gains->n++]))
			return false;
	return true;
}

// A file that other users can write must not change root's figures.
static int read_file(const char *path, char *text, size_t size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (!S_ISREG(st.st_mode) || (geteuid() == 0 && st.st_uid != 0)))
		r = -EPERM;
	ssize_t n = r == 0 ? read(fd, text, size - 1) : 0;
	if (n < 0)
		r = -errno;
	else
		text[n] = '\0';
	close(fd);
	return r;
}

void gpu_gains_finish(struct gpu_gains *gains)
{
	free(gains->at);
	*gains = (struct gpu_gains){0};
}

static int load(const char *path, char *text, struct gpu_gains *gains, struct wattle_error *reterr)
{
	int r = read_file(path, text, FILE_CEILING);
	if (r == -ENOENT || r == -ENOTDIR)
		return -ENOENT;
	if (r < 0)
		return error_set(reterr, -EINVAL, "the GPU calibration in %s is not used: %s", path,
			r == -EPERM ? "the file is not owned by root" : strerror(-r));
	if (parse_file(text, gains))
		return 0;
	gains->n = 0;
	return error_set(reterr, -EINVAL,
		"the GPU calibration in %s is not used: the file is damaged; remove it and calibrate again", path);
}

int gpu_gain_load(const struct wattle_env *env, struct gpu_gains *ret_gains, struct wattle_error *reterr)
{
	char path[PATH_SIZE];
	*ret_gains = (struct gpu_gains){0};
	if (!gpu_gain_path(env, path, sizeof(path)))
		return -ENOENT;
	char *text = calloc_array(FILE_CEILING, 1);
	ret_gains->at = calloc_array(GPU_GAINS_MAX, sizeof(*ret_gains->at));
	int r = text == NULL || ret_gains->at == NULL ? error_set(reterr, -EINVAL, "out of memory")
						      : load(path, text, ret_gains, reterr);
	free(text);
	return r;
}

static void put(struct buf *out, const struct gpu_gain *gain)
{
	buf_printf(out, "%s ", gain->uuid);
	buf_fixed(out, gain->factor, 5);
	buf_char(out, ' ');
	buf_fixed(out, gain->error * 100, 3);
	buf_printf(out, " %s\n", gain->date);
}

static int write_gains(const char *path, const struct gpu_gains *old, const struct gpu_gain *gain,
	struct wattle_error *reterr)
{
	struct buf out;
	size_t n = 1;
	buf_init(&out, FILE_CEILING - 1);
	buf_printf(&out, "%s\n", header);
	put(&out, gain);
	for (size_t i = 0; i < old->n; i++) {
		if (strcmp(old->at[i].uuid, gain->uuid) == 0)
			continue;
		put(&out, &old->at[i]);
		n++;
	}
	int r = out.failed;
	if (n > GPU_GAINS_MAX)
		r = error_set(reterr, -ENOSPC,
			"can't store the calibration: %s already has %d GPUs, the maximum; remove lines of "
			"other cards", path,
			GPU_GAINS_MAX);
	else if (r < 0 || (r = buf_write_file(&out, path)) < 0)
		error_set(reterr, r, "can't write %s: %s", path, strerror(-r));
	buf_finish(&out);
	return r;
}

int gpu_gain_store(const struct wattle_env *env, const struct gpu_gain *gain, struct wattle_error *reterr)
{
	char path[PATH_SIZE];
	struct gpu_gains old;
	struct wattle_error error = {0};
	if (!gpu_gain_path(env, path, sizeof(path)))
		return error_set(reterr, -ENAMETOOLONG, "can't write the GPU calibration: its path is too long");
	int r = gpu_gain_load(env, &old, &error);
	r = r < 0 && r != -ENOENT ? error_set(reterr, r, "can't store the calibration: %s", error.text)
				  : write_gains(path, &old, gain, reterr);
	gpu_gains_finish(&old);
	return r;
}

/* ---- the domains ---- */

static void give(struct sensor_calibration *calibration, const struct gpu_gain *gain)
{
	*calibration = (struct sensor_calibration){.gain = gain->factor, .error = gain->error};
	if (gain->date[0] != '\0')
		snprintf(calibration->source, sizeof(calibration->source), "wattle sensors --calibrate-gpu %s",
			gain->date);
	else
		text_copy(calibration->source, sizeof(calibration->source), "--gpu-gain");
}

static void give_stored(struct sensor_set *set, const struct gpu_gains *gains)
{
	for (size_t d = 0; d < set->n_devices; d++)
		for (size_t i = 0; i < gains->n; i++)
			if (set->devices[d]->kind == DOMAIN_GPU &&
				strcmp(set->devices[d]->uuid, gains->at[i].uuid) == 0)
				give(&set->calibrations[d], &gains->at[i]);
}

static struct sensor_calibration *find_gpu(const struct sensor_set *set, int index)
{
	for (size_t d = 0; d < set->n_devices; d++)
		if (set->devices[d]->kind == DOMAIN_GPU && set->devices[d]->index == index)
			return &set->calibrations[d];
	return NULL;
}

static bool has_gpu(const struct sensor_set *set)
{
	for (size_t d = 0; d < set->n_devices; d++)
		if (set->devices[d]->kind == DOMAIN_GPU)
			return true;
	return false;
}

static int refuse(const struct sensor_set *set, const char *option, struct wattle_error *reterr)
{
	char list[120] = "";
	for (size_t d = 0; d < set->n_devices; d++) {
		size_t at = strlen(list);
		if (set->devices[d]->kind == DOMAIN_GPU)
			snprintf(list + at, sizeof(list) - at, "%s%d", at > 0 ? ", " : "", set->devices[d]->index);
	}
	if (!has_gpu(set))
		return error_set(reterr, -EINVAL, "--gpu-gain %.60s: no GPU is measured; `wattle sensors` shows why",
			option);
	return error_set(reterr, -EINVAL, "--gpu-gain %.60s: this GPU is not measured; measured GPUs: %s", option,
		list);
}

int gpu_gain_apply(struct sensor_set *set, const struct wattle_env *env, const char *const *options, char *ret_note,
	size_t size, struct wattle_error *reterr)
{
	struct gpu_gains stored;
	struct wattle_error error = {0};
	ret_note[0] = '\0';
	if (gpu_gain_load(env, &stored, &error) == -EINVAL && has_gpu(set))
		text_copy(ret_note, size, error.text);
	give_stored(set, &stored);
	gpu_gains_finish(&stored);
	for (; options != NULL && *options != NULL; options++) {
		struct gpu_gain gain;
		int r = gpu_gain_parse(*options, &gain, reterr);
		if (r < 0)
			return r;
		struct sensor_calibration *gpu = find_gpu(set, gain.index);
		if (gpu == NULL)
			return refuse(set, *options, reterr);
		give(gpu, &gain);
	}
	return 0;
}
