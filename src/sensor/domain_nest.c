#include "sensor/domain_nest.h"

#include "base/util.h"

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
