#include "cap/internal.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// Reads the number in the first line: in a test tree of plain files, the rest may be the old text that write_number is
// about to truncate.
static int read_number(const struct wattle_env *env, const char *path, int64_t *ret_value)
{
	char text[64];
	uint64_t value;
	ssize_t length = file_read_in(env->sysfs_fd, path, text, sizeof(text));
	if (length < 0)
		return (int)length;
	int r = num_parse_sysfs_u64(text, strcspn(text, "\n"), &value);
	if (r == 0 && value > INT64_MAX)
		r = -ERANGE;
	if (r == 0)
		*ret_value = (int64_t)value;
	return r;
}

int cap_files_add(struct cap_files *files, const struct wattle_env *env, const char *folder, const char *file,
	const char *prefix)
{
	if (files->n == CAP_FIELDS_MAX)
		return -1;
	int64_t value;
	char *path = files->files[files->n].path, *name = files->files[files->n].name;
	int path_length = snprintf(path, sizeof(files->files->path), "%s/%s", folder, file);
	int name_length = snprintf(name, sizeof(files->files->name), "%s%s", prefix, file);
	bool fits = path_length < (int)sizeof(files->files->path) && name_length < (int)sizeof(files->files->name);
	return fits && read_number(env, path, &value) == 0 ? (int)files->n++ : -1;
}

int64_t cap_files_value(const struct cap_files *files, int i, const struct cap_setting *setting)
{
	const struct cap_field *field = i >= 0 ? cap_setting_find(setting, files->files[i].name) : NULL;
	return field != NULL ? field->value : VALUE_MISSING;
}

static const char *file_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static int fail_read(const struct wattle_env *env, const struct cap_device *device, const char *path, int code,
	struct wattle_error *reterr)
{
	if (code == -ENOENT || code == -ENOTDIR || code == -ENODEV)
		return error_set(reterr, -ENODEV, "%s: %s/%s no longer exists", device->name, env->sysfs, path);
	return error_set(reterr, code, "%s: can't read %s/%s: %s", device->name, env->sysfs, path, strerror(-code));
}

int cap_files_read(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	struct cap_setting *ret_setting, struct wattle_error *reterr)
{
	for (size_t i = 0; i < files->n; i++) {
		int64_t value = 0;
		int r = read_number(env, files->files[i].path, &value);
		if (r < 0)
			return fail_read(env, device, files->files[i].path, r, reterr);
		cap_setting_add(ret_setting, files->files[i].name, value);
	}
	return 0;
}

static int write_number(const struct wattle_env *env, const char *path, int64_t value)
{
	char text[24];
	struct stat st;
	int length = snprintf(text, sizeof(text), "%" PRId64 "\n", value);
	wattle_cleanup_close int fd = file_open_in(env->sysfs_fd, path, O_WRONLY);
	if (fd < 0)
		return fd;
	// The kernel requires the number in a single write.
	ssize_t written = write(fd, text, (size_t)length);
	if (written != length)
		return written < 0 ? -errno : -EIO;
	/* Plain files of a test tree keep the tail of a longer old text. Truncate afterwards rather than with O_TRUNC:
	 * a process killed in between leaves a number, not an empty file. */
	if (fstat(fd, &st) == 0 && st.st_size > length)
		(void)!ftruncate(fd, length);
	return 0;
}

static int fail_write(const struct wattle_env *env, const struct cap_device *device, const char *path, int64_t value,
	int code, struct wattle_error *reterr)
{
	const char *file = file_name(path);
	switch (code) {
	case -EACCES:
	case -EPERM:
		return error_set(reterr, -EACCES, "%s: only root can write %s/%s; use sudo or the helper",
			device->name, env->sysfs, path);
	case -EROFS:
		return error_set(reterr, code,
			"%s: %s is mounted read-only, as in containers; set the limit outside the container",
			device->name, env->sysfs);
	case -ENODATA: // intel_rapl's answer for a register whose lock bit is set
		return error_set(reterr, -EPERM,
			"%s: the firmware has locked %s until the next boot; change it in the firmware settings",
			device->name, file);
	case -EINVAL:
	case -ERANGE:
		return error_set(reterr, -ERANGE, "%s: the driver rejects %" PRId64 " for %s", device->name,
			value, file);
	case -ENOENT:
	case -ENOTDIR:
	case -ENODEV:
		return error_set(reterr, -ENODEV, "%s: %s/%s no longer exists", device->name, env->sysfs, path);
	default:
		return error_set(reterr, code, "%s: can't write %s/%s: %s", device->name, env->sysfs, path,
			strerror(-code));
	}
}

static int write_file(const struct cap_files *files, size_t i, const struct wattle_env *env,
	const struct cap_device *device, int64_t value, struct wattle_error *reterr)
{
	const char *path = files->files[i].path;
	int64_t now = 0;
	int r = read_number(env, path, &now);
	if (r < 0)
		return fail_read(env, device, path, r, reterr);
	if (now == value)
		return 0;
	r = write_number(env, path, value);
	return r < 0 ? fail_write(env, device, path, value, r, reterr) : 0;
}

static int find(const struct cap_files *files, const char *name)
{
	for (size_t i = 0; i < files->n; i++)
		if (strcmp(files->files[i].name, name) == 0)
			return (int)i;
	return -1;
}

int cap_files_write(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	const struct cap_setting *setting, struct wattle_error *reterr)
{
	for (size_t i = 0; i < setting->n; i++) {
		const struct cap_field *field = &setting->fields[i];
		int at = find(files, field->name);
		if (at < 0) // journal of another kernel with another numbering
			return error_set(reterr, -ENODEV, "%s has no register %s", device->name, field->name);
		int r = write_file(files, (size_t)at, env, device, field->value, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

void cap_files_check_permission(const struct cap_files *files, const struct wattle_env *env, struct cap_device *device)
{
	char why[sizeof(device->why)], remedy[sizeof(device->remedy)];
	device->settable = true;
	for (size_t i = 0; i < files->n && device->settable; i++) {
		wattle_cleanup_close int fd = file_open_in(env->sysfs_fd, files->files[i].path, O_WRONLY);
		const char *file = file_name(files->files[i].path);
		if (fd >= 0)
			continue;
		snprintf(why, sizeof(why), "only root can write %s", file);
		snprintf(remedy, sizeof(remedy), "sudo wattle cap set %s WATTS", device->name);
		if (fd == -EROFS)
			cap_set_why(device, "/sys is mounted read-only", "set it outside the container");
		else
			cap_set_why(device, why, remedy);
	}
}
