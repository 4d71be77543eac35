#include "process/folder.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry { // struct linux_dirent64
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	unsigned char type;
	char name[];
};

static int is_link_to_folder(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

void folder_each(int fd, char *text, size_t size, void (*found)(void *, const char *, unsigned char), void *data)
{
	lseek(fd, 0, SEEK_SET);
	for (;;) {
		long n = syscall(SYS_getdents64, fd, text, size);
		if (n <= 0)
			return;
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(const void *)(text + at);
			at += entry->size;
			if (!is_link_to_folder(entry->name))
				found(data, entry->name, entry->type);
		}
	}
}
