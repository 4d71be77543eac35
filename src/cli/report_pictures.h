/* wattle report --format svg. */
#pragma once

#include "analysis/chart/chart.h"

// Writes all pictures that have anything to show into a folder, which is made, and says which on stderr; an exit status.
int report_pictures(const struct charts *charts, const char *folder);
