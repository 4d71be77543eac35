/* The long-term power limits of CPU packages, which the kernel has beside their counters. (GPUs tell theirs with each reading.) */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/sensor.h"

struct package_limit {
	bool exists;
	struct file_kept limit, enabled;
};

// Of any other domain there is none. *limit is to be closed in every case.
void package_limit_open(struct package_limit *limit, const struct wattle_env *env, const struct domain *domain,
	const char *source);
void package_limit_close(struct package_limit *limit);
double package_limit_w(struct package_limit *limit); // NaN: none is in force, or it can't be read
