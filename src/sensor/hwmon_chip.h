/* The chips of /sys/class/hwmon (and INA3221 monitors where only their bus shows them), each once, known by name:
 * the N of hwmonN is the order in which drivers were loaded and means nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HWMON_PATH_SIZE = 200 };

struct hwmon_chip {
	char name[32];  // of its driver: "coretemp"
	char path[128]; // of its folder, relative to the root
	char device
		[64]; // what the kernel calls the hardware: "ACPI000D:00", "0000:00:18.3"; the folder's name if unknown
	dev_t st_dev;
	ino_t st_ino;
};

struct hwmon_chips {
	struct hwmon_chip *chips; // owned; by name, then by device
	size_t n, capacity;
};

// -ENOMEM only; *ret_chips is always valid.
int hwmon_chips_find(int root_fd, struct hwmon_chips *ret_chips);
void hwmon_chips_finish(struct hwmon_chips *chips);

// Where the attribute is: in the chip's folder or, as drivers of old registered it, in its device's. False: nowhere.
bool hwmon_attribute_path(int root_fd, const struct hwmon_chip *chip, const char *attribute,
	char ret_path[HWMON_PATH_SIZE]);
// Its text without newline; false if there is none.
bool hwmon_attribute_read(int root_fd, const struct hwmon_chip *chip, const char *attribute, char *out, size_t size);
