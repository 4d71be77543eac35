#include "base/clock.h"
#include "base/env.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

static int64_t real_monotonic_ns(void *data)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

static int64_t real_boottime_ns(void *data)
{
	return clock_of_ns(CLOCK_BOOTTIME);
}

static int64_t real_wall_ns(void *data)
{
	return clock_of_ns(CLOCK_REALTIME);
}

// Returns NULL if unset or empty, and in set-uid programs, whose caller must not choose the files that are read or
// loaded.
static const char *variable(const char *name)
{
	if (getauxval(AT_SECURE) != 0)
		return NULL;
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

// *ret_fd is -1 if the default is missing: nothing can be read then, but the caller made no mistake. `name` is the option or
// variable that had `value`: "WATTLE_SYSFS=", "--sysfs ".
static int open_root(const char *name, const char *value, const char *fallback, char *ret_path, size_t size,
	int *ret_fd, struct wattle_error *reterr)
{
	const char *path = value != NULL ? value : fallback;
	if (!text_copy(ret_path, size, path))
		return error_set(reterr, -ENAMETOOLONG, "%s%.40s…: path longer than %zu bytes", name, path,
			size - 1);
	*ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd >= 0 || value == NULL)
		return 0;
	int code = -errno;
	return error_set(reterr, code, "%s%s: %s; give a folder to use instead of %s", name, path,
		strerror(-code), fallback);
}

static const char state_dir_of_root[] = "/var/lib/wattle";

static void find_state_dir(struct wattle_env *env)
{
	const char *state = variable("WATTLE_STATE");
	const char *xdg = variable("XDG_STATE_HOME");
	const char *home = variable("HOME");
	if (state == NULL && geteuid() != 0)
		env->root_state_dir = state_dir_of_root;
	if (state != NULL)
		snprintf(env->state_dir, sizeof(env->state_dir), "%s", state);
	else if (geteuid() == 0)
		snprintf(env->state_dir, sizeof(env->state_dir), "%s", state_dir_of_root);
	else if (xdg != NULL)
		snprintf(env->state_dir, sizeof(env->state_dir), "%s/wattle", xdg);
	else
		snprintf(env->state_dir, sizeof(env->state_dir), "%s/.local/state/wattle", home != NULL ? home : "");
}

static int open_roots(struct wattle_env *env, const char *const names[2], const char *sysfs, const char *procfs,
	struct wattle_error *reterr)
{
	int r = open_root(names[0], sysfs, "/sys", env->sysfs, sizeof(env->sysfs), &env->sysfs_fd, reterr);
	if (r == 0)
		r = open_root(names[1], procfs, "/proc", env->procfs, sizeof(env->procfs), &env->procfs_fd, reterr);
	if (r < 0)
		env_close(env);
	return r;
}

static const struct env_clock real_clock = {real_monotonic_ns, real_boottime_ns, real_wall_ns, NULL};

int env_open(struct wattle_env *env, struct wattle_error *reterr)
{
	static const char *const names[] = {"WATTLE_SYSFS=", "WATTLE_PROCFS="};
	const char *sysfs = variable("WATTLE_SYSFS"), *procfs = variable("WATTLE_PROCFS");
	*env = (struct wattle_env){
		.sysfs_fd = -1,
		.procfs_fd = -1,
		.procfs_replaced = procfs != NULL,
		.nvml = variable("WATTLE_NVML"),
		.rocm_smi = variable("WATTLE_ROCM_SMI"),
		.helper = variable("WATTLE_HELPER"),
		.clock = real_clock,
	};
	find_state_dir(env);
	return open_roots(env, names, sysfs, procfs, reterr);
}

int env_open_with(struct wattle_env *env, const struct env_options *options, struct wattle_error *reterr)
{
	static const char *const names[] = {"--sysfs ", "--procfs "};
	*env = (struct wattle_env){
		.sysfs_fd = -1,
		.procfs_fd = -1,
		.procfs_replaced = options->procfs != NULL,
		.nvml = options->nvml,
		.helper = "off", // the helper itself uses no helper
		.clock = real_clock,
	};
	const char *state_dir = options->state_dir != NULL ? options->state_dir : state_dir_of_root;
	if (!text_copy(env->state_dir, sizeof(env->state_dir), state_dir))
		return error_set(reterr, -ENAMETOOLONG, "--state %.40s…: path longer than %zu bytes", state_dir,
			sizeof(env->state_dir) - 1);
	return open_roots(env, names, options->sysfs, options->procfs, reterr);
}

void env_close(struct wattle_env *env)
{
	if (env->sysfs_fd >= 0)
		close(env->sysfs_fd);
	if (env->procfs_fd >= 0)
		close(env->procfs_fd);
	env->sysfs_fd = env->procfs_fd = -1;
}
