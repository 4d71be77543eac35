/* Whether this process lives in a container, and what to say to whoever started it. */
#pragma once

#include "base/env.h"

#include <stddef.h>

enum container { CONTAINER_NONE, CONTAINER_DOCKER, CONTAINER_PODMAN, CONTAINER_OTHER };

// Of the machine that the environment shows: of made trees the trees tell, not where this process runs.
enum container container_detect(const struct wattle_env *env);

// In a container that is shown no zone of /sys/class/powercap: true, with why and what to start it with instead.
bool container_hides_powercap(const struct wattle_env *env, const char **ret_why, const char **ret_remedy);
// What to start a container with in which perf may count on whole CPUs; "" outside of one.
const char *container_perf_remedy(enum container container);
