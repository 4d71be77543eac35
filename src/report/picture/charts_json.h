/* The charts of a run as a JSON document, "wattle-charts/1", for the page's script and Python's plots. docs/charts.md
 * lists all keys. Numbers in arrays are rounded to five significant digits; unknown values are null. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

struct object_type; // base/fields.h

extern const struct object_type charts_type; // struct charts
void charts_json(const struct charts *charts, struct buf *out);
