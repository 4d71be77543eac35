/* Why a file that should hold a reading can't be read, in words for people, and the command that mends it. */
#pragma once

#include "sensor/sensor.h"

// path: of the file, relative to /sys; code: the negative errno of opening or reading it. Leaves the domain neither
// readable nor used, with `why` and, where a command helps, `remedy`.
void domain_set_unreadable(struct domain *domain, const struct wattle_env *env, const char *path, int code);
