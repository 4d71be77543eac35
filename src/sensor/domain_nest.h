/* Which domain contains which, where the names alone say it. */
#pragma once

#include "sensor/sensor.h"

// The used domain of that name among n, or NULL.
struct domain *domain_find_used(struct domain *domains, size_t n, const char *name);
// Packages lie inside their socket's psys, else inside the one of the machine. Analysis adds packages, not psys: that
// one lies inside the other is for people to see.
void domains_put_packages_inside_psys(struct domain *domains, size_t n);
