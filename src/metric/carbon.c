#include "metric/carbon.h"

#include "base/suggest.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

const struct carbon_region carbon_regions[] = {
#define CARBON_REGION(code_, code3_, name_, g_per_kwh_, year_) {code_, code3_, name_, g_per_kwh_, year_},
#include "metric/carbon.def"
};
const size_t n_carbon_regions = ARRAY_SIZE(carbon_regions);

const char carbon_source[] =
#define CARBON_SOURCE(text) text
#include "metric/carbon.def"
	;

// Codes in common use that ISO 3166 only reserves.
static const char *const aliases[][2] = {{"UK", "GB"}, {"EL", "GR"}};

static const char *iso_code(const char *wanted)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcasecmp(wanted, aliases[i][0]) == 0)
			return aliases[i][1];
	return wanted;
}

int carbon_region_find(const char *option, const char *wanted, const struct carbon_region **ret_region,
	struct wattle_error *reterr)
{
	const char *code = iso_code(wanted);
	char nearest[SUGGEST_WORD_MAX + 32];
	struct suggest suggest;
	suggest_begin(&suggest, wanted, strlen(wanted));
	for (size_t i = 0; i < n_carbon_regions; i++) {
		const char *const names[] = {carbon_regions[i].code, carbon_regions[i].code3, carbon_regions[i].name};
		for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
			if (strcasecmp(names[n], code) == 0) {
				*ret_region = &carbon_regions[i];
				return 0;
			}
			suggest_offer(&suggest, names[n], strlen(names[n]));
		}
	}
	return error_set(reterr, -EINVAL,
		"%s '%.64s': no carbon intensity is known for it%s; give an ISO 3166 code such as DE or DEU (docs/carbon.md "
		"lists all), or the intensity itself with --carbon-intensity",
		option, wanted, suggest_text(&suggest, "", nearest));
}
