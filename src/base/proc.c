#include "base/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRON_MAX = 1 << 20 };

static int open_of(pid_t pid, const char *name)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

char *proc_environ(pid_t pid, size_t *ret_size)
{
	wattle_cleanup_close int fd = open_of(pid, "environ");
	char *text = fd >= 0 ? malloc(ENVIRON_MAX + 1) : NULL;
	size_t size = 0;
	for (ssize_t n = 1; text != NULL && n > 0 && size<ENVIRON_MAX; size += n> 0 ? (size_t)n : 0)
		n = read(fd, text + size, ENVIRON_MAX - size);
	if (text != NULL)
		text[size] = '\0';
	*ret_size = size;
	return text;
}

const char *proc_environ_find(const char *text, size_t size, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = text; at < text + size; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

pid_t proc_parent(pid_t pid)
{
	char text[1024];
	wattle_cleanup_close int fd = open_of(pid, "stat");
	ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (size <= 0)
		return 0;
	text[size] = '\0';
	const char *after_name = strrchr(text, ')'); // ") S PPID"; the name may contain any character
	return after_name != NULL && size - (after_name - text) > 4 ? (pid_t)strtol(after_name + 4, NULL, 10) : 0;
}
