#include "report/palette.h"

#define COLOUR(id, name, on_light, on_dark, use)                                                                       \
	[COLOUR_##id] = {.css = name, .meaning = use, .light = on_light, .dark = on_dark},
const struct colour_row palette[COLOURS] = {
#include "report/palette.def"
};
#undef COLOUR

enum colour colour_of_series(unsigned int n)
{
	return (enum colour)(COLOUR_SERIES_0 + n % COLOUR_SERIES);
}

enum colour colour_of_host(unsigned int n)
{
	return (enum colour)(COLOUR_HOST_0 + n % COLOUR_HOSTS);
}
