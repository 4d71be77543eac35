/* What a dead recorder has left beside its run file. */
#pragma once

#include "base/error.h"

/* Makes rows of the spool, as the next recorder to append would, so that the file is whole by itself. Nothing is done where there
 * is none. -EBUSY: a recorder lives; -EACCES, -EROFS: the file is not ours to write to; -ENOSPC … */
int settle_run_file(const char *path, struct wattle_error *reterr);
