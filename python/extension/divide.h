/* Methods of a loaded run that divide its target's energy over a timeline. */
#pragma once

#include "extension.h"

#include "store/run.h"

// divide(begin_ns, end_ns, column, n_columns, domain=None, without=(), groups=None)
PyObject *run_divide(const struct run *run, PyObject *arguments, PyObject *keywords);
// divide_spans(columns, n_columns, domain=None, without=(), groups=None, pid=own)
PyObject *run_divide_spans(const struct run *run, PyObject *arguments, PyObject *keywords);
