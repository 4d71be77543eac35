/* What `wattle compare` prints. Pure: everything goes to a buffer. */
#pragma once

#include "analysis/compare/compare.h"
#include "base/buf.h"

#include <stdbool.h>

struct object_type; // base/fields.h

extern const struct object_type compare_type;                            // struct comparison
void compare_json(const struct comparison *comparison, struct buf *out); // keys: docs/compare.md
// statistic: min, max, mean or std, for the titles.
void compare_text(const struct comparison *comparison, const char *statistic, struct buf *out, bool colour);
