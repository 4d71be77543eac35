/* A loaded run as a Python object. Its data are immutable, so any thread may read them without the GIL. */
#pragma once

#include "extension.h"

#include "analysis/findings.h"
#include "base/intern.h"
#include "base/fields.h"
#include "store/run.h"

#include <pthread.h>

struct run_object {
	PyObject_HEAD PyObject *path; // str
	struct run run;               // arena NULL: not loaded
	bool has_findings;            // findings are computed on first use
	struct findings findings;
	pthread_mutex_t lock;                 // protects data computed on first use; acquired without the GIL only
	int32_t *name_index, *category_index; // by span: indices into names; in the run's arena
	struct intern names;                  // names and categories of the spans
};

static inline struct run_object *as_run(PyObject *object)
{
	return (struct run_object *)object;
}

// Computes the findings if necessary. Call without the GIL. -ENOMEM.
int run_object_findings(struct run_object *self);
// Computes the name and category indices of the spans if necessary. Call without the GIL. -ENOMEM.
int run_object_name_spans(struct run_object *self);

/* ---- run_columns.c, run_rows.c: methods without arguments ---- */

PyObject *run_samples(PyObject *self, PyObject *unused);
PyObject *run_process_samples(PyObject *self, PyObject *unused);
PyObject *run_devices(PyObject *self, PyObject *unused);
PyObject *run_spans(PyObject *self, PyObject *unused);
PyObject *run_span_names(PyObject *self, PyObject *unused);
PyObject *run_metadata_dict(PyObject *self, PyObject *unused);
PyObject *run_user_metrics(PyObject *self, PyObject *unused);
PyObject *run_events(PyObject *self, PyObject *unused);
PyObject *run_processes(PyObject *self, PyObject *unused);
PyObject *run_segments(PyObject *self, PyObject *unused);

/* ---- buffer.c ---- */

struct column_view {
	const char *name, *unit, *meaning;
	const void *data;   // first item; valid as long as the owner
	size_t n, stride;   // stride: bytes between items
	const char *format; // as in the struct module: "q" int64, "i" int32, "d" double
};

// A Column whose buffer keeps `owner` alive.
PyObject *column_new(const struct state *state, PyObject *owner, const struct column_view *column);
// Appends a Column to a list; false with an exception.
bool column_append(const struct state *state, PyObject *list, PyObject *owner, const struct column_view *column);

/* ---- rows.c: C structs as dicts ---- */

// Converts rows of a field table to dicts; unknown values become None.
PyObject *row_dict(const struct field *fields, size_t n_fields, const void *row);
PyObject *row_dicts(const struct field *fields, size_t n_fields, const void *rows, size_t n, size_t row_size);
