/* The static data of a tracking file as fields, in gpu_tracker's order. */
#pragma once

#include "store/tracking_row.h"

#include <stdbool.h>

enum { TRACKING_STATICS = 9 };

struct tracking_static {
	const char *name;
	const char *text; // NULL: it is a number
	double number;    // NaN unknown
	bool is_integer;
};

void tracking_statics(const struct tracking_facts *facts, struct tracking_static ret_fields[TRACKING_STATICS]);
