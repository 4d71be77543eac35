/* gpu_tracker's sub-tracking files (seeds.md A4): starts and stops of code blocks that the measured program wrote. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct sub_tracking_call {
	int64_t pid;
	const char *name;
	double begin_s, end_s; // Unix time as the file has it; end_s NaN: never stopped
};

/* Calls in order of name, process and start; equal names are one pointer. Starts and stops of one name in one process
 * pair last in, first out, in order of time; at the same instant in order of the file. A stop without a start is counted
 * in *ret_n_strays, or, where that is NULL, refused with both its time and that of the row after it. CSV or SQLite by the
 * ending .csv or .sqlite. -ENOENT …, -EINVAL with a sentence that names the line. The arena owns the result. */
int sub_tracking_read(const char *path, struct arena *arena, struct sub_tracking_call **ret_calls, size_t *ret_n,
	size_t *ret_n_strays, struct wattle_error *reterr);

/* Puts the calls that began while the run was recorded into table span of a finished run file, in one transaction.
 * *ret_n_spans: how many. A second import of the same file adds nothing twice. */
int sub_tracking_import(const char *run_path, const char *sub_tracking_path, size_t *ret_n_spans,
	struct wattle_error *reterr);
