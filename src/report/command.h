/* The stored command line, a JSON array, as words. */
#pragma once

#include "base/buf.h"

// The strings of a JSON array, each with its NUL. -EINVAL: it is none.
int command_words(const char *json, struct buf *out);
