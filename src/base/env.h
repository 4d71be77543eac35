/* The external environment in one struct: paths of /sys and /proc, libraries to load, clocks.
 *
 * All of wattle's access to hardware, processes and time goes through this struct, so tests can run the shipped program on
 * recorded trees with clocks of their own. The documented variables (WATTLE_SYSFS, WATTLE_PROCFS, WATTLE_NVML,
 * WATTLE_ROCM_SMI, WATTLE_STATE) set it; set-uid programs ignore them. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct companion;

struct env_clock {
	int64_t (*monotonic_ns)(void *data); // CLOCK_MONOTONIC: stops while the machine is suspended
	int64_t (*boottime_ns)(void *data);  // CLOCK_BOOTTIME: continues; the difference shows a suspend
	int64_t (*wall_ns)(void *data);      // CLOCK_REALTIME, since the Unix epoch
	void *data;
};

struct wattle_env {
	char sysfs[512];      // path shown in messages
	char procfs[512];     // path shown in messages
	int sysfs_fd;         // owned; -1: not available
	int procfs_fd;        // owned; -1: not available. Machine facts; with procfs_replaced also the target's files
	bool procfs_replaced; // WATTLE_PROCFS is set: the target's /proc files come from there too
	const char *nvml;     // library to dlopen, or NULL for the usual names; borrowed
	const char *rocm_smi; // as for nvml
	const char *helper;   // socket of the helper, "off", or NULL for the default; borrowed
	char state_dir[512];  // folder of the cap journal and the calibrations
	const char *root_state_dir; // root's state folder, read only, if state_dir defaults to the user's own; else
				    // NULL
	struct env_clock clock;
	struct companion *companion; // process/machine.h: an auxiliary process of the recorder; NULL: none; borrowed
};

// Reads the variables. A missing tree is no error (a machine without sensors is normal); a WATTLE_SYSFS or WATTLE_PROCFS that
// is no directory is (-ENOENT, -ENOTDIR …).
int env_open(struct wattle_env *env, struct wattle_error *reterr);
/* Sets env from a program's own options, for a program that must ignore variables: the helper. NULL: the default. *options is
 * read now; its strings are borrowed. */
struct env_options {
	const char *sysfs, *procfs, *nvml, *state_dir;
};
int env_open_with(struct wattle_env *env, const struct env_options *options, struct wattle_error *reterr);
void env_close(struct wattle_env *env);

static inline int64_t env_now_ns(const struct wattle_env *env)
{
	return env->clock.monotonic_ns(env->clock.data);
}
static inline int64_t env_boottime_ns(const struct wattle_env *env)
{
	return env->clock.boottime_ns(env->clock.data);
}
static inline int64_t env_wall_ns(const struct wattle_env *env)
{
	return env->clock.wall_ns(env->clock.data);
}
