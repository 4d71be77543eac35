/* Calls of code blocks from files other than the run file: span files and gpu_tracker's sub-tracking files. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "span/reader/reader.h"
#include "store/export.h"
#include "store/run.h"
#include "store/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gpu_tracker's sub-tracking files: starts and stops of code blocks that the measured program wrote. */

struct sub_tracking_call {
	int64_t pid;
	const char *name;
	double begin_s, end_s; // Unix time as in the file; end_s NaN: never stopped
};

/* Reads calls in order of name, process and start; equal names share one pointer. Starts and stops of one name in one process
 * pair last in, first out by time; at the same instant in file order. A stop without a start is counted in *ret_n_strays; if
 * that is NULL, it is an error whose message names its time and that of the next row. CSV or SQLite by the ending .csv or
 * .sqlite. -ENOENT …, -EINVAL with a message that names the line. The arena owns the result. */
int sub_tracking_read(const char *path, struct arena *arena, struct sub_tracking_call **ret_calls, size_t *ret_n,
	size_t *ret_n_strays, struct wattle_error *reterr);

/* Inserts the calls that began during the recording into table span of a finished run file, in one transaction. *ret_n_spans:
 * number of inserted calls. Importing the same file again adds no duplicates. */
int sub_tracking_import(const char *run_path, const char *sub_tracking_path, size_t *ret_n_spans,
	struct wattle_error *reterr);

/* Iterates over the rows of a sub-tracking file, CSV or SQLite by its ending. Internal to src/store. */

struct sub_tracking_row { // start or stop of a block; texts are valid until the next row
	int64_t pid;
	const char *name;
	bool is_stop;
	double time_s;
	const char *time_text; // text as in the CSV; NULL: SQLite
};

// Callback per row. A negative errno ends the reading; with a message unless it is -ENOMEM.
typedef int (*sub_tracking_take)(void *data, const struct sub_tracking_row *row, struct wattle_error *reterr);

/* Passes all rows to `take` in file order. -ENOENT …, -EINVAL with a message that names the line, or the return value of
 * `take`. */
int sub_tracking_each(const char *path, sub_tracking_take take, void *data, struct wattle_error *reterr);

// The ending of a sub-tracking file, ".csv" or ".sqlite"; NULL: neither.
const char *sub_tracking_ending(const char *path);

/* Writes a new sub-tracking file row by row, CSV or SQLite by its ending; the file appears when it is complete. Internal to
 * src/store. */

struct calls_writer {
	const char *path; // borrowed
	bool is_csv;
	struct export_out text;    // CSV
	struct output_file output; // SQLite
	sqlite3 *db;
	sqlite3_stmt *insert;
};

// Call calls_writer_close in any case.
int calls_writer_open(struct calls_writer *writer, const char *path, struct wattle_error *reterr);
int calls_writer_add(struct calls_writer *writer, const struct sub_tracking_row *row, struct wattle_error *reterr);
// r: result so far; if below 0, the file is discarded and *reterr is kept. Returns the final result.
int calls_writer_close(struct calls_writer *writer, int r, struct wattle_error *reterr);

/* Merges many files of spans into one: sub-tracking files or span files (WATTLE_SPANS). */

/* Writes all rows of the inputs, in order, to the new file `out`. A single folder stands for its files with out's ending,
 * sorted by name. Sub-tracking files, all .csv or all .sqlite, become one file of that kind; span files become a span file or,
 * if out ends in .csv or .sqlite, a sub-tracking file. out appears complete or not at all; nothing is overwritten. A negative
 * errno with a message. */
int merge_files(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);

/* Merges inputs that are all span files into the new file `out`. Internal to src/store. */

int merge_spans(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);
// Converts span files to a sub-tracking file of out's ending.
int merge_spans_into_calls(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);

/* Joins spans that a program stored in its own files to a loaded run; the run file is not changed. */

/* Adds the spans that began during the recording; *ret_n: their number. A span file's times are used directly if file and run
 * are from the same boot of the machine; otherwise they are converted by the wall clock, as for sub-tracking files. Errors as
 * span_file_load and sub_tracking_read; after a failure the run is unchanged. */
int run_join_span_file(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);
int run_join_sub_tracking(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);

/* A span file (WATTLE_SPANS) as a run with spans, metrics and marks only: no samples, no devices. */

/* Several processes may have written to the file one after the other, and the last block of each may be incomplete: readable
 * blocks are loaded. Facts: schema "wattle-spans"; one segment from the first to the last instant; anchor_mono_ns and
 * anchor_wall_ns as in the file. -ENOENT, -EINVAL (not a span file), -ENOTSUP (another version), -ENOMEM with a message.
 * *ret_run is released by run_finish. */
int span_file_load(const char *path, struct run *ret_run, struct wattle_error *reterr);
