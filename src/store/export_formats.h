/* One function a format. Between room-mates. */
#pragma once

#include "store/export_out.h"
#include "store/run.h"

// Append to out->text; failures stay in out. -ENOMEM else.
int export_csv(const struct run *run, struct export_out *out);
int export_jsonl(const struct run *run, struct export_out *out);
int export_gpu_tracker(const struct run *run, const char *path, bool overwrite, struct wattle_error *reterr);
