/* What the files of section caps share. */
#pragma once

#include "extension.h"

/* The exception of a code of wattle_cap_*, with the sentence of this thread: ValueError (out of range, wrong argument), LookupError
 * (no such device), BlockingIOError (somebody has it), RuntimeError (no result), else OSError. Always NULL. */
PyObject *raise_cap(int code);
// (value, notice) of a call that succeeded; steals value, NULL stays NULL. notice NULL: that of this thread.
PyObject *with_notice(PyObject *value, const char *notice);

PyObject *cap_tune(PyObject *module, PyObject *arguments, PyObject *keywords);
