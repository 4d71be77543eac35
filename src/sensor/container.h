/* Detection of containers, and advice for the user who starts one. */
#pragma once

#include "base/env.h"

#include <stddef.h>

enum container { CONTAINER_NONE, CONTAINER_DOCKER, CONTAINER_PODMAN, CONTAINER_OTHER };

// Describes the machine in `env`: if /proc and /sys are replaced (tests), the result describes the replacements, not
// this process.
enum container container_detect(const struct wattle_env *env);

// True if the container hides all zones of /sys/class/powercap; also returns why, and the option to start the container with.
bool container_hides_powercap(const struct wattle_env *env, const char **ret_why, const char **ret_remedy);
// Option that lets perf count on whole CPUs inside the container; "" outside a container.
const char *container_perf_remedy(enum container container);
