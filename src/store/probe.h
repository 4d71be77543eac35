/* Is this a run file? Answered from its first 100 bytes, without opening a database. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

// 0; -ENOENT, -EACCES …: can't be read; -EINVAL: no run file; -ENOTSUP: one of a newer schema.
// With a sentence.
int probe_run_file(const char *path, struct wattle_error *reterr);
// Whether it is an SQLite file of any kind (a run file, gpu_tracker's tracking file …) or a span file.
bool probe_measurements(const char *path);
