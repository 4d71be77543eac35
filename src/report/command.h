/* Reading the stored command line. A file of its own, because jansson's header and our JSON writer's don't mix. */
#pragma once

#include "base/buf.h"

// The strings of a JSON array, each with its NUL. -EINVAL: it is none.
int command_words(const char *json, struct buf *out);
