#include "lib/tracker.h"

#include "base/util.h"
#include "lib/paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// Relative to the folder of /usr/lib/libwattle.so, /usr/lib/x86_64-linux-gnu/libwattle.so or BUILD/src/libwattle.so.
static const char *const ways[] = {"../bin/wattle", "../../bin/wattle", "cli/wattle"};

static int check(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return -errno;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

static int take(const char *folder, size_t length, const char *name, char *ret_path, size_t size)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
	if (n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= size)
		return -ENAMETOOLONG;
	int r = check(path);
	if (r == 0)
		memcpy(ret_path, path, (size_t)n + 1);
	return r;
}

// For a statically linked library, this is the folder of the program itself.
static int find_beside_library(char *ret_path, size_t size)
{
	Dl_info info;
	char library[PATH_MAX];
	if (dladdr((const void *)ways, &info) == 0 || info.dli_fname == NULL ||
		realpath(info.dli_fname, library) == NULL)
		return -ENOENT;
	const char *slash = strrchr(library, '/');
	for (size_t i = 0; slash != NULL && i < ARRAY_SIZE(ways); i++)
		if (take(library, (size_t)(slash - library), ways[i], ret_path, size) == 0)
			return 0;
	return -ENOENT;
}

static int find_in_path(char *ret_path, size_t size)
{
	const char *path = secure_getenv("PATH");
	for (const char *at = path; at != NULL; at = *at == ':' ? at + 1 : NULL) {
		size_t length = strcspn(at, ":");
		if (length > 0 && take(at, length, "wattle", ret_path, size) == 0)
			return 0;
		at += length;
	}
	return -ENOENT;
}

int tracker_program_find(const char *given, char *ret_path, size_t size)
{
	if (given != NULL)
		return text_copy(ret_path, size, given) ? check(given) : -ENAMETOOLONG;
	if (find_beside_library(ret_path, size) == 0)
		return 0;
	if (check(WATTLE_BINDIR "/wattle") == 0 && text_copy(ret_path, size, WATTLE_BINDIR "/wattle"))
		return 0;
	return find_in_path(ret_path, size);
}
