/* Colours by name, from palette.def. */
#pragma once

#include <stdint.h>

#define COLOUR(id, css, light, dark, meaning) COLOUR_##id,
enum colour {
#include "report/palette.def"
	COLOURS
};
#undef COLOUR

enum { COLOUR_SERIES = 16, COLOUR_HOSTS = 8 };

struct colour_row {
	const char *css, *meaning;
	uint32_t light, dark; // 0xRRGGBB
};
extern const struct colour_row palette[COLOURS];

enum colour colour_of_series(unsigned int n);
enum colour colour_of_host(unsigned int n);
