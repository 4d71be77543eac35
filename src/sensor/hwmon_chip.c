#include "sensor/sysfs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static bool join(char *out, size_t size, const char *folder, const char *name)
{
	int length = snprintf(out, size, "%s/%s", folder, name);
	return length > 0 && (size_t)length < size;
}

bool hwmon_attribute_path(int root_fd, const struct hwmon_chip *chip, const char *attribute,
	char ret_path[HWMON_PATH_SIZE])
{
	static const char *const places[] = {"", "device/"};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int length = snprintf(ret_path, HWMON_PATH_SIZE, "%s/%s%s", chip->path, places[i], attribute);
		wattle_cleanup_close int fd = length < HWMON_PATH_SIZE ? file_open_in(root_fd, ret_path, O_PATH)
								       : -ENAMETOOLONG;
		if (fd >= 0)
			return true;
	}
	return false;
}

bool hwmon_attribute_read(int root_fd, const struct hwmon_chip *chip, const char *attribute, char *out, size_t size)
{
	char path[HWMON_PATH_SIZE];
	return hwmon_attribute_path(root_fd, chip, attribute, path) && file_read_line_in(root_fd, path, out, size) > 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

// Sets the device to the last component of the link `device`.
static void find_device(int fd, struct hwmon_chip *chip)
{
	char target[512];
	ssize_t length = readlinkat(fd, "device", target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	const char *device = last_part(length > 0 ? target : chip->path);
	snprintf(chip->device, sizeof(chip->device), "%.63s", device);
}

static bool is_known(const struct hwmon_chips *chips, const struct stat *st)
{
	for (size_t i = 0; i < chips->n; i++)
		if (chips->chips[i].st_ino == st->st_ino && chips->chips[i].st_dev == st->st_dev)
			return true;
	return false;
}

static int append(struct hwmon_chips *chips, const struct hwmon_chip *chip)
{
	struct hwmon_chip *larger = array_reserve(chips->chips, chips->n, &chips->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return -ENOMEM;
	chips->chips = larger;
	chips->chips[chips->n++] = *chip;
	return 0;
}

// usual_name: name of a chip whose folder has no name; NULL: such folders are skipped.
static int add(int root_fd, const char *path, const char *usual_name, struct hwmon_chips *chips)
{
	struct hwmon_chip chip = {0};
	struct stat st;
	wattle_cleanup_close int fd = file_open_in(root_fd, path, O_PATH | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &st) < 0 || is_known(chips, &st) || !text_copy(chip.path, sizeof(chip.path), path))
		return 0;
	chip.st_dev = st.st_dev;
	chip.st_ino = st.st_ino;
	find_device(fd, &chip);
	if (!hwmon_attribute_read(root_fd, &chip, "name", chip.name, sizeof(chip.name))) {
		if (usual_name == NULL)
			return 0;
		text_copy(chip.name, sizeof(chip.name), usual_name);
	}
	return append(chips, &chip);
}

static int scan(int root_fd, const char *folder, const char *prefix, const char *usual_name, struct hwmon_chips *chips)
{
	struct folder entries;
	int r = folder_list(root_fd, folder, prefix, &entries);
	for (size_t i = 0; r == 0 && i < entries.n; i++) {
		char path[256];
		if (join(path, sizeof(path), folder, entries.names[i]))
			r = add(root_fd, path, usual_name, chips);
	}
	folder_finish(&entries);
	return r;
}

// bus/i2c/drivers/DRIVER/1-0040/WITHIN…: chips without a hwmon class device, or with another class (NVIDIA kernels before 5).
static int scan_i2c(int root_fd, const char *driver, const char *within, const char *prefix, struct hwmon_chips *chips)
{
	char folder[96];
	struct folder devices;
	snprintf(folder, sizeof(folder), "bus/i2c/drivers/%s", driver);
	int r = folder_list(root_fd, folder, "", &devices);
	for (size_t i = 0; r == 0 && i < devices.n; i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/%s%s", folder, devices.names[i], within);
		r = scan(root_fd, path, prefix, driver, chips);
	}
	folder_finish(&devices);
	return r;
}

static int by_name_and_device(const void *a, const void *b)
{
	const struct hwmon_chip *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	if (order == 0)
		order = strverscmp(x->device, y->device);
	return order != 0 ? order : strverscmp(x->path, y->path);
}

int hwmon_chips_find(int root_fd, struct hwmon_chips *ret_chips)
{
	*ret_chips = (struct hwmon_chips){0};
	int r = scan(root_fd, "class/hwmon", "hwmon", NULL, ret_chips);
	if (r == 0)
		r = scan_i2c(root_fd, "ina3221", "/hwmon", "hwmon", ret_chips);
	if (r == 0)
		r = scan_i2c(root_fd, "ina3221x", "", "iio:device", ret_chips);
	if (ret_chips->n > 0)
		qsort(ret_chips->chips, ret_chips->n, sizeof(ret_chips->chips[0]), by_name_and_device);
	return r;
}

void hwmon_chips_finish(struct hwmon_chips *chips)
{
	free(chips->chips);
	*chips = (struct hwmon_chips){0};
}
