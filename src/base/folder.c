#include "base/folder.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// No real /sys or /proc folder has more entries.
static const size_t NAMES_MAX = 4096;

static DIR *open_folder(int root_fd, const char *path)
{
	wattle_cleanup_close int fd = file_open_in(root_fd, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (dir != NULL)
		take_fd(&fd);
	return dir;
}

static int add(struct folder *folder, const char *name)
{
	if (strlen(name) >= FOLDER_NAME_SIZE || folder->n == NAMES_MAX)
		return 0;
	void *larger = array_reserve(folder->names, folder->n, &folder->capacity, FOLDER_NAME_SIZE, 16);
	if (larger == NULL)
		return -ENOMEM;
	folder->names = larger;
	text_copy(folder->names[folder->n++], FOLDER_NAME_SIZE, name);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	return strverscmp(a, b);
}

int folder_list(int root_fd, const char *path, const char *prefix, struct folder *ret_folder)
{
	*ret_folder = (struct folder){0};
	wattle_cleanup_dir DIR *dir = open_folder(root_fd, path);
	if (dir == NULL)
		return 0;
	int r = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(dir)) != NULL;)
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
			r = add(ret_folder, entry->d_name);
	if (ret_folder->n > 0)
		qsort(ret_folder->names, ret_folder->n, FOLDER_NAME_SIZE, by_number);
	return r;
}

void folder_finish(struct folder *folder)
{
	free(folder->names);
	*folder = (struct folder){0};
}

struct folder_walk folder_walk_begin(int fd, char *text, size_t size)
{
	lseek(fd, 0, SEEK_SET);
	return (struct folder_walk){.fd = fd, .text = text, .size = size};
}

static bool is_itself_or_above(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

const char *folder_walk_next(struct folder_walk *walk, unsigned char *ret_type)
{
	for (;;) {
		if (walk->at >= walk->filled) {
			walk->at = 0;
			walk->filled = getdents64(walk->fd, walk->text, walk->size);
		}
		if (walk->filled <= 0)
			return NULL;
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)(walk->text + walk->at);
		walk->at += entry->d_reclen;
		if (is_itself_or_above(entry->d_name))
			continue;
		if (ret_type != NULL)
			*ret_type = entry->d_type;
		return entry->d_name;
	}
}
