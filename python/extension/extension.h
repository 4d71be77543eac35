/* Shared by the files of the extension: module state, errors, and the types they add. Uses only the limited API of 3.9
 * and the buffer protocol (limited_api.h), so one build serves all later versions of Python.
 *
 * All state belongs to the module (`struct state`) or to a thread (open_spans.h), so each interpreter of a process has its
 * own types. Functions that wait or read files release the GIL. */
#pragma once

#include "limited_api.h"

#include "base/error.h"
#include "base/util.h"

#include <stdint.h>

enum type_id { TYPE_SPAN, TYPE_TRACKER, TYPE_METER, TYPE_READING, TYPE_RUN, TYPE_BUFFER, TYPE_COLUMN, TYPES };

struct state {
	PyObject *types[TYPES];
	PyObject *ranges; // module wattle._ranges, imported on first use; NULL: not yet
};

struct state *state_of_module(PyObject *module);
// State of the module that defines a type; NULL with an exception for a type derived in Python.
struct state *state_of(PyTypeObject *type);

// Each adds types or functions to the module; -1 with an exception.
int add_span(PyObject *module);
int add_tracker(PyObject *module);
int add_meter(PyObject *module);
int add_buffer(PyObject *module);
int add_run(PyObject *module);
int add_files(PyObject *module);
int add_gpus(PyObject *module);
int add_cap(PyObject *module);
int add_carbon(PyObject *module);
int add_sub_tracking(PyObject *module);

/* ---- errors.c ---- */

/* Raises the exception of a negative errno with a message (NULL: the C library's message): ValueError for -EINVAL,
 * MemoryError for -ENOMEM, else OSError, which selects its own subclass. Always returns NULL. */
PyObject *raise_code(int code, const char *sentence);
// The same, except that -EPERM, -EALREADY and -EBADF mean a call in the wrong state: RuntimeError.
PyObject *raise_state(int code, const char *sentence);

// Decodes a message to str. Messages quote file names and contents of damaged files, which may be any bytes.
PyObject *text_for_display(const char *sentence);
void raise_text(PyObject *type, const char *sentence);

/* ---- tracker.c ---- */

// Path of the program shipped with the package (wheels and build folders), as bytes; NULL: the C library searches for the
// installed program.
PyObject *program_of_package(PyObject *module);

/* ---- arguments ---- */

// UTF-8 of a str without NUL, borrowed from it; NULL with TypeError or ValueError. `what`: name of the argument for the
// message.
const char *text_of(PyObject *object, const char *what);
// Converter for O&: None leaves *ret_bytes unchanged; a path becomes bytes as in PyUnicode_FSConverter.
int path_or_none(PyObject *object, void *ret_bytes);
