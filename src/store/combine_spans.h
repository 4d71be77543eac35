/* The new file `out` from inputs that are all span files. Between room-mates. */
#pragma once

#include "store/combine.h"

int combine_spans(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);
// Span files into a sub-tracking file by out's ending.
int combine_spans_into_calls(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);
