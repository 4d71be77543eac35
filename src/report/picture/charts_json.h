/* The charts of a run as one JSON document, "wattle-charts/1": what the page's script and Python's plots draw. docs/charts.md has every
 * key. Arrays of numbers are rounded to five significant digits; unknown is null. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

struct object_type; // base/fields.h

extern const struct object_type charts_type; // struct charts
void charts_json(const struct charts *charts, struct buf *out);
