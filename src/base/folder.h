/* Contents of a folder of /sys or /proc: a complete list in natural order, or entry by entry at each sample. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { FOLDER_NAME_SIZE = 64, FOLDER_TEXT_SIZE = 4096 };

struct folder {
	char (*names)[FOLDER_NAME_SIZE]; // owned; natural order: hwmon2 before hwmon10
	size_t n, capacity;
};

// Lists entries whose name starts with `prefix` ("": all but hidden ones). A missing folder gives an empty list; fails with
// -ENOMEM only. Names longer than FOLDER_NAME_SIZE are skipped: no device has one. *ret_folder is always valid.
int folder_list(int root_fd, const char *path, const char *prefix, struct folder *ret_folder);
void folder_finish(struct folder *folder);

/* Iteration over the entries of an open folder, without the allocation of opendir. */
struct folder_walk {
	int fd;     // borrowed
	char *text; // borrowed; aligned to 8
	size_t size;
	ssize_t filled, at;
};

// Starts at the first entry, regardless of fd's position. `text` must not move until the iteration ends.
struct folder_walk folder_walk_begin(int fd, char *text, size_t size);
// Returns the next name except "." and "..", valid until the next call; NULL: end. *ret_type (NULL allowed) is the type of
// <dirent.h>, DT_UNKNOWN if the file system does not report it.
const char *folder_walk_next(struct folder_walk *walk, unsigned char *ret_type);
