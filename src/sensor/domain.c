#include "sensor/internal.h"

#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct domain *domain_find_used(struct domain *domains, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (domains[i].used && strcmp(domains[i].name, name) == 0)
			return &domains[i];
	return NULL;
}

void domains_put_packages_inside_psys(struct domain *domains, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct domain *d = &domains[i];
		if (d->kind != DOMAIN_PACKAGE)
			continue;
		char own[sizeof(d->inside)];
		snprintf(own, sizeof(own), "psys-%d", d->index);
		const struct domain *psys = domain_find_used(domains, n, own);
		if (psys == NULL)
			psys = domain_find_used(domains, n, "psys");
		if (psys != NULL)
			text_copy(d->inside, sizeof(d->inside), psys->name);
	}
}

// Rejects paths that would be truncated or need shell quoting: a wrong command is worse than none.
static bool shell_path(const struct wattle_env *env, const char *path, char *out, size_t size)
{
	int length = snprintf(out, size, "%s/%s", env->sysfs, path);
	return length > 0 && (size_t)length < size && strpbrk(out, " '\"$\\`;&|<>*?()") == NULL;
}

void domain_set_unreadable(struct domain *domain, const struct wattle_env *env, const char *path, int code)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash != NULL ? slash + 1 : path;
	char full[160];
	domain->readable = domain->used = false;
	domain->remedy[0] = '\0';
	if (code == -EACCES || code == -EPERM) {
		snprintf(domain->why, sizeof(domain->why), "%s is readable by root only", file);
		if (shell_path(env, path, full, sizeof(full)))
			snprintf(domain->remedy, sizeof(domain->remedy), "sudo chmod a+r %s", full);
	} else if (code == -ENOENT || code == -ENOTDIR) {
		snprintf(domain->why, sizeof(domain->why), "%s is missing", file);
	} else if (code == -EINVAL || code == -ERANGE) {
		// The kernel also returns EINVAL when it can't read the register.
		snprintf(domain->why, sizeof(domain->why), "%s contains no number, or the kernel can't read it", file);
	} else {
		snprintf(domain->why, sizeof(domain->why), "%s: %s", file, strerror(-code));
	}
}

void domain_leave_out(struct domain *domain, const char *why, ...)
{
	va_list args;
	va_start(args, why);
	vsnprintf(domain->why, sizeof(domain->why), why, args);
	va_end(args);
	domain->used = false;
	domain->remedy[0] = '\0';
}
