/* What lies in a folder of /sys, in an order that people expect: hwmon2 before hwmon10. */
#pragma once

#include <stddef.h>

enum { FOLDER_NAME_SIZE = 64 };

struct folder {
	char (*names)[FOLDER_NAME_SIZE]; // owned
	size_t n, capacity;
};

// Entries whose name starts with `prefix` ("": all but the hidden ones). A folder that is not there has none; -ENOMEM
// only. Longer names than fit are left out: no device has one. *ret_folder is always valid.
int folder_list(int root_fd, const char *path, const char *prefix, struct folder *ret_folder);
void folder_finish(struct folder *folder);
