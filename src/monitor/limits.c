#include "monitor/internal.h"

#include "base/util.h"

#include <stdio.h>

enum { CONSTRAINTS_MAX = 8 };

// Finds the index of the long-term constraint. It varies, because absent constraints are skipped. -1: none.
static int find_long_term(const struct wattle_env *env, const char *zone)
{
	char path[200], name[32];
	for (int i = 0; i < CONSTRAINTS_MAX; i++) {
		snprintf(path, sizeof(path), "class/powercap/%s/constraint_%d_name", zone, i);
		if (file_read_line_in(env->sysfs_fd, path, name, sizeof(name)) > 0 && strcmp(name, "long_term") == 0)
			return i;
	}
	return -1;
}

void package_limit_open(struct package_limit *limit, const struct wattle_env *env, const struct domain *domain,
	const char *source)
{
	char path[200];
	*limit = (struct package_limit){.limit.fd = -1, .enabled.fd = -1};
	if (domain->kind != DOMAIN_PACKAGE || strcmp(source, "powercap") != 0)
		return;
	int constraint = find_long_term(env, domain->device);
	if (constraint < 0)
		return;
	snprintf(path, sizeof(path), "class/powercap/%s/constraint_%d_power_limit_uw", domain->device, constraint);
	limit->exists = file_kept_open(&limit->limit, env->sysfs_fd, path) == 0;
	snprintf(path, sizeof(path), "class/powercap/%s/enabled", domain->device);
	file_kept_open(&limit->enabled, env->sysfs_fd, path);
}

void package_limit_close(struct package_limit *limit)
{
	if (limit->limit.path[0] == '\0')
		return;
	file_kept_close(&limit->limit);
	file_kept_close(&limit->enabled);
}

double package_limit_w(struct package_limit *limit)
{
	uint64_t enabled, limit_uw;
	if (!limit->exists || (file_kept_read_u64(&limit->enabled, &enabled) == 0 && enabled == 0))
		return (double)NAN;
	return file_kept_read_u64(&limit->limit, &limit_uw) == 0 && limit_uw > 0 ? (double)limit_uw / 1e6 : (double)NAN;
}
