/* Shared by the files that wrap section caps of include/wattle.h. */
#pragma once

#include "extension.h"

/* Raises the exception of a wattle_cap_* error code with this thread's error message: ValueError (out of range, invalid
 * argument), LookupError (no such device), BlockingIOError (in use), RuntimeError (no result), else OSError. Always
 * returns NULL. */
PyObject *raise_cap(int code);
// Returns (value, notice) of a successful call; steals value, NULL stays NULL. notice NULL: this thread's notice.
PyObject *with_notice(PyObject *value, const char *notice);

PyObject *cap_tune(PyObject *module, PyObject *arguments, PyObject *keywords);
