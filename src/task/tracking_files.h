/* Code blocks of gpu_tracker's own files. */
#pragma once

#include "analysis/compare/tracking_blocks.h"

/* tracking_file NULL: compute times only. The arena owns the result. What tracking_table_read and sub_tracking_read return. */
int tracking_files_blocks(const char *tracking_file, const char *sub_tracking_file, struct arena *arena,
	struct tracking_findings *ret_findings, struct wattle_error *reterr);
