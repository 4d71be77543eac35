/* Calls of code blocks that lie in other files than a run's: span files and gpu_tracker's sub-tracking files. */
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

/* gpu_tracker's sub-tracking files (seeds.md A4): starts and stops of code blocks that the measured program wrote. */

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

/* The rows of a sub-tracking file one by one, CSV or SQLite by its ending. Between room-mates. */

struct sub_tracking_row { // a start or a stop of a block; texts live until the next row
	int64_t pid;
	const char *name;
	bool is_stop;
	double time_s;
	const char *time_text; // as the CSV has it; NULL: SQLite
};

// Ends the reading by a negative errno, with a sentence if it is not -ENOMEM.
typedef int (*sub_tracking_take)(void *data, const struct sub_tracking_row *row, struct wattle_error *reterr);

/* Hands over all rows in the order of the file. -ENOENT …, -EINVAL with a sentence that names the line, and what `take`
 * returns. */
int sub_tracking_each(const char *path, sub_tracking_take take, void *data, struct wattle_error *reterr);

// ".csv" or ".sqlite", the ending by which such a file is known; NULL: neither.
const char *sub_tracking_ending(const char *path);

/* Writes a new sub-tracking file row by row, CSV or SQLite by its ending; it appears when it is whole. Between
 * room-mates. */

struct calls_writer {
	const char *path; // borrowed
	bool is_csv;
	struct export_out text; // CSV
	struct place place;     // SQLite
	sqlite3 *db;
	sqlite3_stmt *insert;
};

// Close it in any case.
int calls_writer_open(struct calls_writer *writer, const char *path, struct wattle_error *reterr);
int calls_writer_add(struct calls_writer *writer, const struct sub_tracking_row *row, struct wattle_error *reterr);
// r: how it went until here; below 0 nothing is left behind, and *reterr stays. Returns how it went in the end.
int calls_writer_close(struct calls_writer *writer, int r, struct wattle_error *reterr);

/* Many files of spans into one: sub-tracking files (seeds.md A4) or span files (WATTLE_SPANS). */

/* All rows of the inputs, in their order, in the new file `out`; a single folder stands for the files in it, those of
 * out's ending, in order of their names. Sub-tracking files, all .csv or all .sqlite, become one of their kind; span files
 * become a span file or, where out ends in .csv or .sqlite, a sub-tracking file. out appears whole or not at all, and
 * nothing is overwritten. A negative errno with a sentence. */
int combine_files(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);

/* The new file `out` from inputs that are all span files. Between room-mates. */

int combine_spans(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);
// Span files into a sub-tracking file by out's ending.
int combine_spans_into_calls(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr);

/* Spans that a program left beside its recording, put into the loaded run; the file is not touched. */

/* Those that began while something was recorded; *ret_n: how many. A span file's times are on the run's clock when both
 * come from one start of the machine, else they are brought there by the wall clock, as a sub-tracking file's always are.
 * As span_file_load and sub_tracking_read; after a failure the run is as it was. */
int run_join_span_file(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);
int run_join_sub_tracking(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);

/* A span file (WATTLE_SPANS) as a run that has spans, metrics and marks only: no sample, no device. */

/* Several processes may have written to it one after the other, and the last block of each may be torn: what can be read is
 * read. Facts: schema "wattle-spans"; one segment from the first to the last instant; anchor_mono_ns and anchor_wall_ns as the
 * file has them. -ENOENT, -EINVAL (not a span file), -ENOTSUP (of another version), -ENOMEM with a sentence. *ret_run is
 * released by run_finish. */
int span_file_load(const char *path, struct run *ret_run, struct wattle_error *reterr);
