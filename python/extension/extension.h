/* What the files of the extension share: the module's state, errors, and the types they add.
 *
 * Only the limited API of 3.11, so one build serves every later Python. All state is the module's own (`struct state`), or the
 * thread's (open_spans.h): each interpreter of a process has its types. Functions that wait or read files give the GIL away. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/error.h"
#include "base/util.h"

#include <stdint.h>

enum type_id { TYPE_SPAN, TYPE_TRACKER, TYPE_METER, TYPE_READING, TYPE_RUN, TYPE_BUFFER, TYPE_COLUMN, TYPES };

struct state {
	PyObject *types[TYPES];
	PyObject *ranges; // module wattle._ranges, imported when first needed; NULL: not yet
};

struct state *state_of_module(PyObject *module);
// Of an object of one of our types, or of a type derived from it by the interpreter's own means: NULL with an exception.
struct state *state_of(PyTypeObject *type);

// Each adds its type or its functions; -1 with an exception.
int add_span(PyObject *module);
int add_tracker(PyObject *module);
int add_meter(PyObject *module);
int add_buffer(PyObject *module);
int add_run(PyObject *module);
int add_files(PyObject *module);
int add_gpus(PyObject *module);
int add_cap(PyObject *module);
int add_sub_tracking(PyObject *module);

/* ---- errors.c ---- */

/* The exception of a negative errno and a sentence (NULL: what the C library says of the code): ValueError for -EINVAL,
 * MemoryError for -ENOMEM, else OSError, which picks its own subclass. Always NULL. */
PyObject *raise_code(int code, const char *sentence);
// The same where -EPERM, -EALREADY and -EBADF tell of a call in the wrong state: RuntimeError.
PyObject *raise_state(int code, const char *sentence);

// Sentences quote names of files and what damaged files hold, any bytes; a str all the same.
PyObject *text_for_people(const char *sentence);
void raise_text(PyObject *type, const char *sentence);

/* ---- tracker.c ---- */

// Bytes: the program that came with the package, in wheels and build folders; NULL: the C library looks for the installed one.
PyObject *program_of_package(PyObject *module);

/* ---- arguments ---- */

// UTF-8 of a str without NUL, borrowed from it; NULL with TypeError or ValueError. `what` names the argument.
const char *text_of(PyObject *object, const char *what);
// A converter for O&: None leaves *ret_bytes as it is, a path becomes bytes, as PyUnicode_FSConverter gives them.
int path_or_none(PyObject *object, void *ret_bytes);
