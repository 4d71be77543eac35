/* Carbon intensity of electricity by country: the table of carbon.def, and searching it. Pure; no network. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct carbon_region {
	const char *code, *code3, *name; // ISO 3166-1 alpha-2 and alpha-3
	double g_per_kwh;                // CO2 equivalent per kWh of generated electricity, mean of the year
	int year;
};

extern const struct carbon_region carbon_regions[];
extern const size_t n_carbon_regions;
extern const char carbon_source[]; // of all figures

/* By code or name, in any case. -EINVAL with a message that names `option` ("--carbon-region"), the value and the nearest valid
 * one. */
int carbon_region_find(const char *option, const char *wanted, const struct carbon_region **ret_region,
	struct wattle_error *reterr);
