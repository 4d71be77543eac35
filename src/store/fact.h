/* A fact that is added to a finished run file: a row of its table run. */
#pragma once

#include "base/error.h"

// Replaces what stands there under that key. -ENOENT, -EINVAL (no run file), -EBUSY, -ENOSPC …, with a sentence.
int run_keep_fact(const char *path, const char *key, const char *value, struct wattle_error *reterr);
