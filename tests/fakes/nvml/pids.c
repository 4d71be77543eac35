#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Children of `parent`'s main thread, and theirs if `deep`.
static size_t children(pid_t parent, bool deep, pid_t *ret_pids, size_t max)
{
	char path[64];
	size_t n = 0;
	int pid;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (n < max && fscanf(file, "%d", &pid) == 1) {
		ret_pids[n++] = pid;
		if (deep)
			n += children(pid, deep, ret_pids + n, max - n);
	}
	fclose(file);
	return n;
}

// A file beside the configuration that holds pids in decimal.
static size_t from_file(const char *name, const char *config_path, pid_t *ret_pids, size_t max)
{
	char path[800];
	const char *slash = strrchr(config_path, '/');
	int folder = name[0] != '/' && slash != NULL ? (int)(slash - config_path + 1) : 0;
	snprintf(path, sizeof(path), "%.*s%s", folder, config_path, name);
	FILE *file = fopen(path, "re");
	size_t n = 0;
	int pid;
	if (file == NULL)
		return 0;
	while (n < max && fscanf(file, "%d", &pid) == 1)
		ret_pids[n++] = pid;
	fclose(file);
	return n;
}

size_t fake_pids(const char *who, const char *config_path, pid_t *ret_pids, size_t max)
{
	if (strcmp(who, "children") == 0 || strcmp(who, "descendants") == 0)
		return children(getpid(), who[0] == 'd', ret_pids, max);
	if (strncmp(who, "file:", 5) == 0)
		return from_file(who + 5, config_path, ret_pids, max);
	const char *number = strncmp(who, "env:", 4) == 0 ? getenv(who + 4) : who;
	int pid = number != NULL ? atoi(number) : 0;
	if (strcmp(who, "self") == 0)
		pid = getpid();
	if (strcmp(who, "parent") == 0)
		pid = getppid();
	if (pid <= 0 || max == 0)
		return 0;
	ret_pids[0] = pid;
	return 1;
}
