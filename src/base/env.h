/* The outside world in one struct: where /sys and /proc are, which libraries to load, what time it is.
 *
 * Nothing in wattle looks at hardware, processes or time but through this; so tests run the program that ships, on
 * recorded trees and with a clock of their own. The documented variables (WATTLE_SYSFS, WATTLE_PROCFS, WATTLE_NVML,
 * WATTLE_ROCM_SMI, WATTLE_STATE) set it; they are ignored in set-uid programs. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct companion;

struct env_clock {
	int64_t (*monotonic_ns)(void *data); // CLOCK_MONOTONIC: stands still while the machine is suspended
	int64_t (*boottime_ns)(void *data);  // CLOCK_BOOTTIME: goes on; the difference tells of a suspend
	int64_t (*wall_ns)(void *data);      // CLOCK_REALTIME, since the Unix epoch
	void *data;
};

struct wattle_env {
	char sysfs[512];      // path shown in messages
	char procfs[512];     // path shown in messages
	int sysfs_fd;         // owned; -1: there is none
	int procfs_fd;        // owned; -1: there is none: machine facts and, with procfs_replaced, the target's files
	bool procfs_replaced; // WATTLE_PROCFS is set: the target's own /proc comes from there too
	const char *nvml;     // library to dlopen, or NULL for the usual names; borrowed
	const char *rocm_smi; // likewise
	const char *helper;   // socket of the helper, "off", or NULL for the default; borrowed
	char state_dir[512];  // cap journal and calibrations
	const char *root_state_dir; // root's, to look at, where state_dir is a user's own by default; NULL: none other
	struct env_clock clock;
	struct companion *companion; // process/machine.h: a process of wattle's own beside the recorder; NULL: none; borrowed
};

// Reads the variables; never fails for a missing tree (a machine without sensors is normal), only for a
// WATTLE_SYSFS or WATTLE_PROCFS that names no directory (-ENOENT, -ENOTDIR …).
int env_open(struct wattle_env *env, struct wattle_error *reterr);
/* The same from a program's own options, for one that must not listen to variables: the helper. NULL: the default.
 * *options is read now, its texts are borrowed. */
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
