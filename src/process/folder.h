/* The entries of an open folder, without the allocation that readdir makes. */
#pragma once

#include <stddef.h>

/* Calls `found` with each entry, "." and ".." left out. `type` is that of <dirent.h>, DT_UNKNOWN where the file system
 * does not tell. `text` is scratch; it must stand still while `found` runs. Each call begins with the first entry. */
void folder_each(int fd, char *text, size_t size, void (*found)(void *data, const char *name, unsigned char type),
	void *data);
