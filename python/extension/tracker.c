/* Tracker: section tracker of include/wattle.h as an object. wattle.Tracker (tracker.py) is the public interface. */
#include "extension.h"

#include "wattle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tracker {
	PyObject_HEAD wattle_tracker *tracker; // owned; NULL: closed
	int n_users;                           // threads inside one of its calls, without the GIL
};

static struct tracker *as_tracker(PyObject *object)
{
	return (struct tracker *)object;
}

/* ---- options ---- */

struct given {                                      // owners of data that the options borrow
	PyObject *output, *tracking_file, *program; // bytes
	PyObject *arguments;                        // a sequence of str or path
	PyObject *encoded;                          // list: the arguments as bytes
	const char **words;
};

static void release(struct given *given)
{
	Py_CLEAR(given->output);
	Py_CLEAR(given->tracking_file);
	Py_CLEAR(given->program);
	Py_CLEAR(given->encoded);
	free((void *)given->words);
}

static const char *bytes_of(PyObject *bytes)
{
	return bytes != NULL ? PyBytes_AsString(bytes) : NULL;
}

static bool encode_arguments(struct given *given)
{
	if (given->arguments == NULL)
		return true;
	if (PyUnicode_Check(given->arguments)) {
		PyErr_SetString(PyExc_TypeError, "arguments must be a sequence of words, not one str");
		return false;
	}
	given->encoded = PySequence_List(given->arguments);
	Py_ssize_t n = given->encoded != NULL ? PyList_Size(given->encoded) : 0;
	given->words = calloc((size_t)n + 1, sizeof(*given->words));
	if (given->encoded != NULL && given->words == NULL)
		(void)PyErr_NoMemory();
	if (given->encoded == NULL || given->words == NULL)
		return false;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *bytes = NULL;
		if (!PyUnicode_FSConverter(PyList_GetItem(given->encoded, i), &bytes))
			return false;
		given->words[i] = PyBytes_AsString(bytes);
		PyList_SetItem(given->encoded, i, bytes);
	}
	return true;
}

PyObject *program_of_package(PyObject *module)
{
	PyObject *file = module != NULL ? PyModule_GetFilenameObject(module) : NULL;
	PyObject *path = NULL, *bytes = NULL;
	if (file != NULL) {
		Py_ssize_t slash = PyUnicode_FindChar(file, '/', 0, PyUnicode_GetLength(file), -1);
		PyObject *folder = slash >= 0 ? PyUnicode_Substring(file, 0, slash) : NULL;
		path = folder != NULL ? PyUnicode_FromFormat("%U/bin/wattle", folder) : NULL;
		Py_XDECREF(folder);
	}
	if (path != NULL && PyUnicode_FSConverter(path, &bytes) && access(PyBytes_AsString(bytes), X_OK) != 0)
		Py_CLEAR(bytes);
	Py_XDECREF(file);
	Py_XDECREF(path);
	PyErr_Clear(); // a module without a file has no packaged program
	return bytes;
}

static int make(struct tracker *self, struct given *given, struct wattle_tracker_options *options)
{
	if (!encode_arguments(given))
		return -1;
	if (given->program == NULL)
		given->program = program_of_package(PyType_GetModule(Py_TYPE((PyObject *)self)));
	options->output = bytes_of(given->output);
	options->tracking_file = bytes_of(given->tracking_file);
	options->program = bytes_of(given->program);
	options->arguments = given->words;
	wattle_tracker *tracker;
	int r = wattle_tracker_new(options, &tracker);
	if (r < 0) {
		(void)raise_code(r, NULL);
		return -1;
	}
	if (self->n_users > 0) {
		wattle_tracker_free(tracker);
		PyErr_SetString(PyExc_RuntimeError, "another thread is using this tracker");
		return -1;
	}
	wattle_tracker_free(self->tracker);
	self->tracker = tracker;
	return 0;
}

static int init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"interval_s", "output", "overwrite", "tracking_file", "ram_unit", "gpu_ram_unit",
		"time_unit", "expected_cores", "gpus", "gpu_brand", "label", "pid", "keep_environment", "quiet",
		"program", "arguments", "stop_timeout_s", NULL};
	struct wattle_tracker_options o = {.size = sizeof(o)};
	struct given given = {0};
	long long cores = 0, pid = 0;
	bool parsed = PyArg_ParseTupleAndKeywords(arguments, keywords, "|$dO&pO&zzzLzzzLppO&Od:Tracker", names,
		&o.interval_s, path_or_none, &given.output, &o.overwrite, path_or_none, &given.tracking_file,
		&o.ram_unit, &o.gpu_ram_unit, &o.time_unit, &cores, &o.gpus, &o.gpu_brand, &o.label, &pid,
		&o.keep_environment, &o.quiet, path_or_none, &given.program, &given.arguments, &o.stop_timeout_s);
	o.expected_cores = cores;
	o.pid = pid;
	int r = parsed ? make(as_tracker(self), &given, &o) : -1;
	release(&given);
	return r;
}

/* ---- calls ---- */

/* Updates WATTLE_RING in os.environ. The C library sets and unsets the variable, but os.environ, which often defines the
 * environment of child processes, is a separate copy. */
static int renew_environ(void)
{
	const char *ring = getenv("WATTLE_RING");
	PyObject *os = PyImport_ImportModule("os");
	PyObject *copy = os != NULL ? PyObject_GetAttrString(os, "environ") : NULL;
	PyObject *result = NULL;
	if (copy != NULL && ring != NULL)
		result = PyObject_CallMethod(copy, "__setitem__", "ss", "WATTLE_RING", ring);
	else if (copy != NULL)
		result = PyObject_CallMethod(copy, "pop", "sO", "WATTLE_RING", Py_None);
	Py_XDECREF(os);
	Py_XDECREF(copy);
	Py_XDECREF(result);
	return result != NULL ? 0 : -1;
}

static wattle_tracker *get(PyObject *self)
{
	wattle_tracker *tracker = as_tracker(self)->tracker;
	if (tracker == NULL)
		PyErr_SetString(PyExc_RuntimeError, "the tracker is closed");
	return tracker;
}

// Marks the tracker as in use. Several threads may use it at once, but none may close it meanwhile.
static wattle_tracker *take(PyObject *self)
{
	wattle_tracker *tracker = get(self);
	if (tracker != NULL)
		as_tracker(self)->n_users++;
	return tracker;
}

// Returns NULL with an exception. The tracker must be taken, because its error text is read.
static PyObject *fail(PyObject *self, int r)
{
	return raise_state(r, wattle_tracker_error(as_tracker(self)->tracker));
}

static PyObject *change(PyObject *self, int (*how)(wattle_tracker *))
{
	wattle_tracker *tracker = take(self);
	if (tracker == NULL)
		return NULL;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = how(tracker);
	Py_END_ALLOW_THREADS
	PyObject *result = renew_environ() < 0 ? NULL : r < 0 ? fail(self, r) : Py_NewRef(Py_None);
	as_tracker(self)->n_users--;
	return result;
}

static PyObject *start(PyObject *self, PyObject *unused)
{
	return change(self, wattle_tracker_start);
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
	return change(self, wattle_tracker_stop);
}

static PyObject *report_json(PyObject *self, PyObject *unused)
{
	wattle_tracker *tracker = take(self);
	if (tracker == NULL)
		return NULL;
	char *text = NULL;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = wattle_tracker_report_json(tracker, &text);
	Py_END_ALLOW_THREADS
	PyObject *result = r < 0 ? fail(self, r) : PyUnicode_FromString(text);
	free(text);
	as_tracker(self)->n_users--;
	return result;
}

static void free_tracker(PyObject *self)
{
	wattle_tracker *tracker = as_tracker(self)->tracker;
	as_tracker(self)->tracker = NULL;
	if (tracker == NULL)
		return;
	Py_BEGIN_ALLOW_THREADS
	wattle_tracker_free(tracker);
	Py_END_ALLOW_THREADS
}

static PyObject *close_tracker(PyObject *self, PyObject *unused)
{
	if (as_tracker(self)->n_users > 0) {
		PyErr_SetString(PyExc_RuntimeError, "another thread is using this tracker");
		return NULL;
	}
	bool was_open = as_tracker(self)->tracker != NULL;
	free_tracker(self);
	if (was_open && renew_environ() < 0)
		return NULL;
	Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	free_tracker(self);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *get_state(PyObject *self, void *unused)
{
	wattle_tracker *tracker = get(self);
	return tracker != NULL ? PyLong_FromLong(wattle_tracker_state(tracker)) : NULL;
}

static PyObject *get_run_file(PyObject *self, void *unused)
{
	wattle_tracker *tracker = get(self);
	if (tracker == NULL)
		return NULL;
	const char *path = wattle_tracker_run_file(tracker);
	return path != NULL && path[0] != '\0' ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
	{"start", start, METH_NOARGS, "Starts the recorder; returns after its first sample."},
	{"stop", stop, METH_NOARGS, "Ends the recording; returns when the run file is complete."},
	{"report_json", report_json, METH_NOARGS, "The report as JSON, schema wattle-report/1; only after stop."},
	{"close", close_tracker, METH_NOARGS, "Stops the recorder if it runs, and removes a temporary run file."},
	{NULL},
};

static PyGetSetDef members[] = {
	{"state", get_state, NULL, "0 new, 1 started, 2 stopped", NULL},
	{"run_file", get_run_file, NULL, "Path of the run file; None before start.", NULL},
	{NULL},
};

static PyType_Slot type_slots[] = {
	{Py_tp_doc, "A recorder of this process or another one; see wattle.Tracker."},
	{Py_tp_new, (void *)PyType_GenericNew},
	{Py_tp_init, (void *)init},
	{Py_tp_dealloc, (void *)dealloc},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

static PyType_Spec type_spec = {"wattle._wattle.Tracker", sizeof(struct tracker), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, type_slots};

int add_tracker(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
	if (type == NULL)
		return -1;
	state_of_module(module)->types[TYPE_TRACKER] = type;
	return PyModule_AddType(module, (PyTypeObject *)type);
}
