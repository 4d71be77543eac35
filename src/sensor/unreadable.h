/* Why a domain is not used, in words for people: a file that should hold a reading can't be read, with the command that
 * mends it, or another domain is better. */
#pragma once

#include "sensor/sensor.h"

// path: of the file, relative to /sys; code: the negative errno of opening or reading it. Leaves the domain neither
// readable nor used, with `why` and, where a command helps, `remedy`.
void domain_set_unreadable(struct domain *domain, const struct wattle_env *env, const char *path, int code);
// A domain that is listed but not used, whether it can be read or not: there is nothing to mend about it.
__attribute__((format(printf, 2, 3))) void domain_leave_out(struct domain *domain, const char *why, ...);
