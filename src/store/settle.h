/* What a dead recorder has left beside its run file. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

// Whether its recorder may still write to it. Where file systems have no locks, only a run that says it is complete is over.
bool settle_may_grow(const char *path);
/* Makes rows of the spool, as the next recorder to append would, so that the file is whole by itself. Nothing is done where there
 * is none. For who knows that the recorder is dead, or has asked settle_may_grow. -EBUSY: a recorder lives; -EACCES, -EROFS: the
 * file is not ours to write to; -ENOSPC … */
int settle_run_file(const char *path, struct wattle_error *reterr);
