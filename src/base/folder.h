/* What lies in a folder of /sys or /proc: all of it in an order that people expect, or entry by entry at each sample. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { FOLDER_NAME_SIZE = 64, FOLDER_TEXT_SIZE = 4096 };

struct folder {
	char (*names)[FOLDER_NAME_SIZE]; // owned; hwmon2 before hwmon10
	size_t n, capacity;
};

// Entries whose name starts with `prefix` ("": all but the hidden ones). A folder that is not there has none; -ENOMEM
// only. Longer names than fit are left out: no device has one. *ret_folder is always valid.
int folder_list(int root_fd, const char *path, const char *prefix, struct folder *ret_folder);
void folder_finish(struct folder *folder);

/* The entries of an open folder one by one, without the allocation that opendir makes. */
struct folder_walk {
	int fd;     // borrowed
	char *text; // borrowed; aligned to 8
	size_t size;
	ssize_t filled, at;
};

// Begins with the first entry, wherever an earlier walk has left fd. `text` must stand still until the walk is over.
struct folder_walk folder_walk_begin(int fd, char *text, size_t size);
// The next name, "." and ".." left out, valid until the next call; NULL: no more. *ret_type (NULL allowed) is that of
// <dirent.h>, DT_UNKNOWN where the file system does not tell.
const char *folder_walk_next(struct folder_walk *walk, unsigned char *ret_type);
