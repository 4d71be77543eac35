/* Many files of spans into one: sub-tracking files (seeds.md A4) or span files (WATTLE_SPANS). */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* All rows of the inputs, in their order, in the new file `out`; a single folder stands for the files in it, those of
 * out's ending, in order of their names. Sub-tracking files, all .csv or all .sqlite, become one of their kind; span files
 * become a span file or, where out ends in .csv or .sqlite, a sub-tracking file. out appears whole or not at all, and
 * nothing is overwritten. A negative errno with a sentence. */
int combine_files(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);
