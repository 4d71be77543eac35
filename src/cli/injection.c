#include "cli/measure.h"

#include "base/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct injection {
	const char *option, *variable, *library;
	size_t asked; // offset of the flag in struct measure_options
};

static const struct injection injections[] = {
	{"--nvtx", "NVTX_INJECTION64_PATH", "libwattle-nvtx.so", offsetof(struct measure_options, nvtx)},
	{"--itt", "INTEL_LIBITTNOTIFY64", "libwattle-itt.so", offsetof(struct measure_options, itt)},
};

// Folders of the libraries relative to the program's folder: installed, in the Python package, or in the build tree.
static const char *const library_folders[] = {WATTLE_INJECTION_FOLDER, "../lib/wattle", "../span"};

static bool is_asked(const struct injection *injection, const struct measure_options *options)
{
	return *(const bool *)((const char *)options + injection->asked);
}

const char *injection_option(const struct measure_options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(injections); i++)
		if (is_asked(&injections[i], options))
			return injections[i].option;
	return NULL;
}

int assignments_add(struct assignments *assignments, const char *name, const char *value, struct wattle_error *reterr)
{
	char *text;
	if (assignments->n == ASSIGNMENTS_MAX || asprintf(&text, "%s=%s", name, value) < 0)
		return error_set(reterr, -ENOMEM, "out of memory");
	assignments->items[assignments->n++] = text;
	return 0;
}

void assignments_free(struct assignments *assignments)
{
	for (size_t i = 0; i < assignments->n; i++)
		free(assignments->items[i]);
	*assignments = (struct assignments){0};
}

static int program_folder(char folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	if (length < 0)
		return -errno;
	folder[length] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int find_library(const struct injection *injection, char ret_path[PATH_MAX], struct wattle_error *reterr)
{
	char own[PATH_MAX];
	int r = program_folder(own);
	for (size_t i = 0; i < ARRAY_SIZE(library_folders) && r == 0; i++) {
		const char *folder = library_folders[i];
		char path[2 * PATH_MAX];
		snprintf(path, sizeof(path), "%s%s%s/%s", folder[0] == '/' ? "" : own, folder[0] == '/' ? "" : "/",
			folder, injection->library);
		if (access(path, R_OK) == 0 && realpath(path, ret_path) != NULL)
			return 0;
	}
	return error_set(reterr, -ENOENT,
		"%s: %s is missing; wattle installs it in %s (path as the program sees it)", injection->option,
		injection->library, library_folders[0]);
}

static void warn_of_other(const struct injection *injection, const char *path)
{
	const char *other = getenv(injection->variable);
	if (other == NULL || other[0] == '\0' || strcmp(other, path) == 0)
		return;
	char text[PATH_MAX + 200];
	snprintf(text, sizeof(text),
		"%s: %s was %s; a program can have only one capture library, so wattle replaced it", injection->option,
		injection->variable, other);
	cli_warn(text);
}

int injection_assign(const struct measure_options *options, struct assignments *assignments,
	struct wattle_error *reterr)
{
	for (size_t i = 0; i < ARRAY_SIZE(injections); i++) {
		const struct injection *injection = &injections[i];
		char path[PATH_MAX];
		if (!is_asked(injection, options))
			continue;
		int r = find_library(injection, path, reterr);
		if (r == 0)
			r = assignments_add(assignments, injection->variable, path, reterr);
		if (r < 0)
			return r;
		if (!options->disable_logs)
			warn_of_other(injection, path);
	}
	return 0;
}
