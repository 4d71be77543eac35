/* A run file in another layout. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct export_choice {
	const char *format; // csv, jsonl, gpu_tracker … (export_formats), folded, or aipowermeter
	const char *weight; // of folded: energy or time; NULL: energy
	const char *path;   // what is written, aipowermeter's folder; - is standard output
	bool overwrite;
	int64_t every_ns; // of openmetrics: at most one sample of a series in so long; 0: all
};

// -EINVAL: no such format or weight; -EEXIST; -ENODATA: the run has nothing to write so; what run_load returns.
int export_file(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr);
