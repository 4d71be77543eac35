/* A run in another layout (docs/exports.md): pure functions of struct run, written to a file or to stdout. */
#pragma once

#include "base/error.h"
#include "store/run.h"

#include <stdbool.h>

// The formats that export_run knows, for messages: "csv, jsonl, gpu_tracker".
const char *export_formats(void);
/* format: "csv" (a row a sample), "jsonl" (an object a record) or "gpu_tracker" (its tracking file, by the ending of
 * path). path "-" is stdout, not for gpu_tracker. A file appears whole or not at all. -EINVAL: no such format or
 * ending; -EEXIST: it exists and may not be overwritten; -ENOSPC … with a sentence. */
int export_run(const struct run *run, const char *format, const char *path, bool overwrite,
	struct wattle_error *reterr);
