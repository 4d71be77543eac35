/* A loaded run as an object. Its data do not change after it was made, so they are read without the GIL and by any thread. */
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
	bool has_findings;            // made when first asked for
	struct findings findings;
	pthread_mutex_t lock;                 // of what is made when first asked for; taken without the GIL only
	int32_t *name_index, *category_index; // of each span in names; in the run's arena
	struct intern names;                  // of the spans and their categories
};

static inline struct run_object *as_run(PyObject *object)
{
	return (struct run_object *)object;
}

// The findings, made if need be. To be called without the GIL. -ENOMEM.
int run_object_findings(struct run_object *self);
// Numbers of the spans' names. Likewise.
int run_object_name_spans(struct run_object *self);

/* ---- run_columns.c, run_rows.c: methods without arguments ---- */

PyObject *run_samples(PyObject *self, PyObject *unused);
PyObject *run_process_samples(PyObject *self, PyObject *unused);
PyObject *run_devices(PyObject *self, PyObject *unused);
PyObject *run_spans(PyObject *self, PyObject *unused);
PyObject *run_span_names(PyObject *self, PyObject *unused);
PyObject *run_facts(PyObject *self, PyObject *unused);
PyObject *run_user_metrics(PyObject *self, PyObject *unused);
PyObject *run_events(PyObject *self, PyObject *unused);
PyObject *run_processes(PyObject *self, PyObject *unused);
PyObject *run_segments(PyObject *self, PyObject *unused);

/* ---- buffer.c ---- */

struct column_view {
	const char *name, *unit, *meaning;
	const void *data;   // of the first item; lives as long as the owner
	size_t n, stride;   // bytes from one item to the next
	const char *format; // of the struct module: "q" int64, "i" int32, "d" double
};

// A Column whose buffer keeps `owner` alive.
PyObject *column_new(const struct state *state, PyObject *owner, const struct column_view *column);
// Appends it to a list; false with an exception.
bool column_append(const struct state *state, PyObject *list, PyObject *owner, const struct column_view *column);

/* ---- rows.c: structs of C as dicts ---- */

// Rows of a field table as dicts: unknown values become None.
PyObject *row_dict(const struct field *fields, size_t n_fields, const void *row);
PyObject *row_dicts(const struct field *fields, size_t n_fields, const void *rows, size_t n, size_t row_size);
