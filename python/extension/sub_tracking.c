/* sub_tracking_calls: start and stop events of gpu_tracker's sub-tracking files, paired as in `wattle blocks`. */
#include "extension.h"

#include "base/arena.h"
#include "store/sub_tracking.h"

#include <errno.h>
#include <string.h>

struct calls {
	struct arena *arena;
	struct sub_tracking_call *all;
	size_t n;
};

static PyObject *list_of(const struct calls *calls)
{
	PyObject *list = PyList_New((Py_ssize_t)calls->n);
	for (size_t i = 0; list != NULL && i < calls->n; i++) {
		const struct sub_tracking_call *call = &calls->all[i];
		PyObject *name = PyUnicode_DecodeUTF8(call->name, (Py_ssize_t)strlen(call->name), "surrogateescape");
		PyObject *row = name != NULL ? Py_BuildValue("(Ndd)", name, call->begin_s, call->end_s) : NULL;
		if (row == NULL || PyList_SetItem(list, (Py_ssize_t)i, row) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *sub_tracking_calls(PyObject *module, PyObject *path)
{
	PyObject *bytes;
	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	struct calls calls = {.arena = arena_new()};
	struct wattle_error error = {0};
	int r = -ENOMEM;
	Py_BEGIN_ALLOW_THREADS
	if (calls.arena != NULL)
		r = sub_tracking_read(PyBytes_AsString(bytes), calls.arena, &calls.all, &calls.n, NULL, &error);
	Py_END_ALLOW_THREADS
	PyObject *list = r < 0 ? raise_code(r, error.text) : list_of(&calls);
	arena_free(calls.arena);
	Py_DECREF(bytes);
	return list;
}

static PyMethodDef functions[] = {
	{"sub_tracking_calls", sub_tracking_calls, METH_O,
		"sub_tracking_calls(path, /)\n--\n\n"
		"Calls in a sub-tracking file: (name, begin_s, end_s), ordered by name, process and start."},
	{NULL},
};

int add_sub_tracking(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
