#include "sensor/sysfs.h"

#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

// A file with denied access stays in the list, so that the reason is reported and later access can succeed.
static bool is_usable(struct file_kept *file, int opened, bool asleep)
{
	int64_t value;
	if (opened == -EACCES || opened == -EPERM)
		return true;
	return opened == 0 && (asleep || file_kept_read_i64(file, &value) == 0);
}

// Opens the first file that yields a number. If none does, opens the first that exists: it may yield a number later.
static void open_first(struct gauge_file *file, int root_fd, const char *folder, bool asleep)
{
	char path[sizeof(file->file.path)];
	for (int attempt = 0; attempt < 2; attempt++) {
		for (size_t i = 0; i < ARRAY_SIZE(file->gauge->names) && file->gauge->names[i] != NULL; i++) {
			snprintf(path, sizeof(path), "%s/%s", folder, file->gauge->names[i]);
			int r = file_kept_open(&file->file, root_fd, path);
			if (is_usable(&file->file, r, asleep || attempt > 0))
				return;
			file_kept_close(&file->file);
			file->file.path[0] = '\0';
		}
	}
}

void gauges_open(struct gauge_file *files, const struct gauge *gauges, size_t n, int root_fd, const char *device,
	const char *hwmon, bool asleep)
{
	for (size_t i = 0; i < n; i++) {
		const char *folder = gauges[i].in_hwmon ? hwmon : device;
		files[i] = (struct gauge_file){.file.fd = -1, .gauge = &gauges[i]};
		if (folder[0] != '\0')
			open_first(&files[i], root_fd, folder, asleep);
	}
}

void gauges_close(struct gauge_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (files[i].gauge != NULL)
			file_kept_close(&files[i].file);
}

int gauges_read(struct gauge_file *files, size_t n, int64_t *row)
{
	int failure = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t value;
		if (files[i].file.path[0] == '\0')
			continue;
		int r = file_kept_read_i64(&files[i].file, &value);
		if (r == 0)
			row[files[i].gauge->metric] = value / files[i].gauge->divisor;
		else
			failure = r;
	}
	return failure;
}

struct gauge_file *gauges_find(struct gauge_file *files, size_t n, enum device_metric metric)
{
	for (size_t i = 0; i < n; i++)
		if (files[i].gauge->metric == metric && files[i].file.path[0] != '\0')
			return &files[i];
	return NULL;
}

int64_t gauge_read_once(int root_fd, const char *folder, const char *name)
{
	char path[256], text[64];
	int64_t value;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ssize_t length = file_read_in(root_fd, path, text, sizeof(text));
	return length > 0 && num_parse_sysfs_i64(text, (size_t)length, &value) == 0 ? value : VALUE_MISSING;
}
