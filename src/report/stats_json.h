/* The shape that documents of code blocks are made of. */
#pragma once

#include "analysis/findings.h"
#include "base/jsonw.h"

// "key": {"min", "max", "mean", "std"}, each times the factor.
void stats_json(struct jsonw *j, const char *key, const struct value_stats *stats, double factor);
