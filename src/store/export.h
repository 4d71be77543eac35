/* A run in another layout (docs/exports.md): pure functions of struct run, written to a file or to stdout. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"
#include "store/place.h"
#include "store/run.h"

#include <stdbool.h>

// The formats that export_run knows, for messages: "csv, jsonl, gpu_tracker".
const char *export_formats(void);
/* format: "csv" (a row a sample), "jsonl" (an object a record) or "gpu_tracker" (its tracking file, by the ending of
 * path). path "-" is stdout, not for gpu_tracker. A file appears whole or not at all. -EINVAL: no such format or
 * ending; -EEXIST: it exists and may not be overwritten; -ENOSPC … with a sentence. */
int export_run(const struct run *run, const char *format, const char *path, bool overwrite,
	struct wattle_error *reterr);

/* Where an export goes: a file that appears whole or not at all, a pipe or device, or stdout; written in pieces, so
 * that a run of any length takes little memory. Between room-mates. */

struct export_out {
	struct buf text; // append here, then call export_out_more
	struct place place;
	int fd; // borrowed from place, stdout, or owned
	bool owned;
	int failed; // negative errno, sticky
};

int export_out_open(struct export_out *out, const char *path, bool overwrite, struct wattle_error *reterr);
// Passes on what has come together, now and then.
void export_out_more(struct export_out *out);
// The rest, and the name. Closes in any case.
int export_out_close(struct export_out *out, const char *path, struct wattle_error *reterr);
// -EEXIST with a sentence if something stands there and may not be replaced.
int export_check_free(const char *path, bool overwrite, struct wattle_error *reterr);

/* One function a format. Between room-mates. */

// Append to out->text; failures stay in out. -ENOMEM else.
int export_csv(const struct run *run, struct export_out *out);
int export_jsonl(const struct run *run, struct export_out *out);
int export_gpu_tracker(const struct run *run, const char *path, bool overwrite, struct wattle_error *reterr);

// Kinds of lines of "jsonl".
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

/* The rows of a loaded run as objects (base/fields.h): JSON Lines and the package for Python show them by these. Keys and their
 * meaning are those of the tables of the run file (schema.c). */

extern const struct object_type run_device_type, run_process_type, run_event_type, run_span_type, run_user_metric_type;
