/* A run as a folder of AIPowerMeter's. */
#pragma once

#include "store/run.h"
#include "task/export_file.h"

// -EEXIST: the folder is there, is not empty, and may not be overwritten; -ENODATA: the run has no samples.
int export_aipowermeter(const struct run *run, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr);
