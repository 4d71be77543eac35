/* Whether this process lives in a container, and what to say to whoever started it. */
#pragma once

#include "base/env.h"

enum container { CONTAINER_NONE, CONTAINER_DOCKER, CONTAINER_PODMAN, CONTAINER_OTHER };

enum container container_detect(const struct wattle_env *env);
// The flags of a new container in which the CPU's counters can be read; "" outside of one.
const char *container_powercap_remedy(enum container container);
// Likewise one in which perf may count on whole CPUs.
const char *container_perf_remedy(enum container container);
