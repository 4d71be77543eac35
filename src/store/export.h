/* Exports of a run to other formats (docs/exports.md): pure functions of struct run, written to a file or to stdout. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"
#include "store/output_file.h"
#include "store/run.h"

#include <stdbool.h>

// The formats that export_run supports, for messages: "csv, jsonl, gpu_tracker".
const char *export_formats(void);
/* format: "csv" (one row per sample), "jsonl" (one object per record) or "gpu_tracker" (its tracking file; the ending of path
 * selects CSV or SQLite). path "-" is stdout, not for gpu_tracker. The file appears complete or not at all. -EINVAL: unknown
 * format or ending; -EEXIST: the file exists and overwrite is false; -ENOSPC …, with a message. */
int export_run(const struct run *run, const char *format, const char *path, bool overwrite,
	struct wattle_error *reterr);

/* The destination of an export: a file that appears complete or not at all, a pipe or device, or stdout. The text is written in
 * pieces, so a run of any length needs little memory. Internal to src/store. */

struct export_out {
	struct buf text; // append here, then call export_out_more
	struct output_file output;
	int fd; // borrowed from place, stdout, or owned
	bool owned;
	int failed; // negative errno, sticky
};

int export_out_open(struct export_out *out, const char *path, bool overwrite, struct wattle_error *reterr);
// Writes the buffered text once enough has accumulated.
void export_out_more(struct export_out *out);
// Writes the rest and renames the file into place. Always closes.
int export_out_close(struct export_out *out, const char *path, struct wattle_error *reterr);
// -EEXIST with a message if the path exists and overwrite is false.
int export_check_free(const char *path, bool overwrite, struct wattle_error *reterr);

/* One function per format. Internal to src/store. */

// Append to out->text; write failures are kept in out. -ENOMEM otherwise.
int export_csv(const struct run *run, struct export_out *out);
int export_jsonl(const struct run *run, struct export_out *out);
int export_gpu_tracker(const struct run *run, const char *path, bool overwrite, struct wattle_error *reterr);

// Line kinds of "jsonl".
enum export_line {
	EXPORT_RUN,
	EXPORT_SEGMENT,
	EXPORT_DEVICE,
	EXPORT_SAMPLE,
	EXPORT_DEVICE_SAMPLE,
	EXPORT_PROCESS_SAMPLE,
	EXPORT_PROCESS,
	EXPORT_EVENT,
	EXPORT_SPAN,
	EXPORT_USER_METRIC,
	EXPORT_LINES,
};
extern const struct object_type export_lines[EXPORT_LINES];

/* The rows of a loaded run as objects (base/fields.h), for JSON Lines and the Python package. The tables of the run file
 * (schema.c) define the keys and their meaning. */

extern const struct object_type run_device_type, run_process_type, run_event_type, run_span_type, run_user_metric_type;
