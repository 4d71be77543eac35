#include "job/owner.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "job/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 1 << 18, ANCESTORS_MAX = 256 };

struct environment { // "NAME=VALUE" NUL "NAME=VALUE" NUL …
	char *text;
	size_t size;
};

static const char *variable(const char *name, void *data)
{
	const struct environment *environment = data;
	size_t length = strlen(name);
	const char *end = environment->text + environment->size;
	for (const char *at = environment->text; at < end; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

int64_t job_owner_rank(pid_t owner)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/environ", owner);
	wattle_cleanup_free char *text = malloc(ENVIRONMENT_MAX + 1);
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (text == NULL || fd < 0)
		return VALUE_MISSING;
	size_t size = 0;
	for (ssize_t n = 1; n > 0 && size<ENVIRONMENT_MAX; size += n> 0 ? (size_t)n : 0)
		n = read(fd, text + size, ENVIRONMENT_MAX - size);
	text[size] = '\0';
	struct environment environment = {text, size};
	struct job_place place;
	job_place_find(variable, &environment, &place);
	return place.rank;
}

// 0: it has none that we see.
static pid_t parent_of(pid_t pid)
{
	char path[40], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (size <= 0)
		return 0;
	text[size] = '\0';
	const char *after_name = strrchr(text, ')'); // ") S PPID"; the name may have anything in it
	return after_name != NULL && size - (after_name - text) > 4 ? (pid_t)strtol(after_name + 4, NULL, 10) : 0;
}

bool job_owner_is_kin(pid_t owner, pid_t target)
{
	if (parent_of(owner) == target)
		return true;
	pid_t pid = getppid();
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == owner)
			return true;
		pid = parent_of(pid);
	}
	return false;
}
