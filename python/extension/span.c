/* wattle.span and the other calls of section spans in include/wattle.h. Parts that need Python features (coroutines,
 * decorators) are in wattle/_ranges.py. */
#include "extension.h"

#include "open_spans.h"
#include "span/writer/writer.h"
#include "wattle.h"

#include <errno.h>
#include <math.h>

struct span {
	PyObject_HEAD PyObject *name; // str; never NULL
	const char *text;             // its UTF-8, owned by name
};

static struct span *as_span(PyObject *object)
{
	return (struct span *)object;
}

/* Does not parse arguments, because the time of these methods is the user's cost of a span. */
static PyObject *enter(PyObject *self, PyObject *unused)
{
	if (span_writer_is_on())
		open_spans_begin(self, as_span(self)->text);
	return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	if (span_writer_is_on())
		open_spans_end(self);
	Py_RETURN_NONE;
}

static PyObject *make(PyTypeObject *type, PyObject *name)
{
	const char *text = text_of(name, "the name of a span");
	if (text == NULL)
		return NULL;
	struct span *span = PyObject_New(struct span, type);
	if (span == NULL)
		return NULL;
	span->name = Py_NewRef(name);
	span->text = text;
	return (PyObject *)span;
}

static PyObject *new (PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"name", NULL};
	PyObject *name;
	return PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Span", names, &name) ? make(type, name) : NULL;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(as_span(self)->name);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *repr(PyObject *self)
{
	return PyUnicode_FromFormat("wattle.span(%R)", as_span(self)->name);
}

static PyObject *get_name(PyObject *self, void *unused)
{
	return Py_NewRef(as_span(self)->name);
}

/* ---- implemented in wattle._ranges ---- */

static PyObject *ranges(PyObject *self)
{
	struct state *state = state_of(Py_TYPE(self));
	if (state != NULL && state->ranges == NULL)
		state->ranges = PyImport_ImportModule("wattle._ranges");
	return state != NULL ? state->ranges : NULL;
}

static PyObject *by_ranges(PyObject *self, const char *function, PyObject *argument)
{
	PyObject *module = ranges(self);
	if (module == NULL)
		return NULL;
	PyObject *callable = PyObject_GetAttrString(module, function);
	if (callable == NULL)
		return NULL;
	PyObject *result = PyObject_CallFunctionObjArgs(callable, self, argument, NULL);
	Py_DECREF(callable);
	return result;
}

static PyObject *enter_async(PyObject *self, PyObject *unused)
{
	return by_ranges(self, "enter", NULL);
}

static PyObject *leave_async(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	return by_ranges(self, "leave", NULL);
}

static PyObject *call(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"function", NULL};
	PyObject *function;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:span", names, &function))
		return NULL;
	return by_ranges(self, "decorate", function);
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
	return Py_BuildValue("(O(O))", (PyObject *)Py_TYPE(self), as_span(self)->name);
}

static PyMethodDef methods[] = {
	{"__enter__", enter, METH_NOARGS, "Begins a span of this name in the calling thread."},
	{"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL,
		"Ends the span that this object began last in the calling thread. Exceptions propagate."},
	{"__aenter__", enter_async, METH_NOARGS, "Begins a range, which other tasks may overlap."},
	{"__aexit__", (PyCFunction)(void (*)(void))leave_async, METH_FASTCALL,
		"Ends the range that this task began last with this object. Exceptions propagate."},
	{"__reduce__", reduce, METH_NOARGS, "For pickle, which stores the name."},
	{NULL},
};

static PyGetSetDef members[] = {{"name", get_name, NULL, "Name of the code block.", NULL}, {NULL}};

static PyType_Slot type_slots[] = {
	{Py_tp_doc,
		"Span(name)\n--\n\nA code block of the calling thread: context manager and decorator. See help(wattle.span)."},
	{Py_tp_new, (void *)new},
	{Py_tp_dealloc, (void *)dealloc},
	{Py_tp_repr, (void *)repr},
	{Py_tp_call, (void *)call},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

// Immutable, so that the interpreter can cache method lookups.
static PyType_Spec type_spec = {"wattle._wattle.Span", sizeof(struct span), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, type_slots};

/* ---- interface for C code in this process without the GIL: ../wattle/torch/observer.cpp ---- */

static void begin_by_key(const void *key, const char *name)
{
	if (span_writer_is_on())
		open_spans_begin(key, name);
}

static void end_by_key(const void *key)
{
	if (span_writer_is_on())
		open_spans_end(key);
}

static const struct span_calls {
	void (*begin)(const void *key, const char *name);
	void (*end)(const void *key);
} calls = {begin_by_key, end_by_key};

static int add_calls(PyObject *module)
{
	PyObject *capsule = PyCapsule_New((void *)&calls, "wattle._wattle.span_calls", NULL);
	int r = capsule != NULL ? module_add(module, "span_calls", capsule) : -1;
	Py_XDECREF(capsule);
	return r;
}

/* ---- functions ---- */

static PyObject *span(PyObject *module, PyObject *name)
{
	return make((PyTypeObject *)state_of_module(module)->types[TYPE_SPAN], name);
}

/* Ignores values that are not finite or too large, because measurement must not end a program with an exception. A value
 * that is not a number is a programming error and raises one. */
static PyObject *metric(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
	if (n != 2)
		return PyErr_Format(PyExc_TypeError, "metric() takes a name and a value, not %zd arguments", n);
	const char *name = text_of(arguments[0], "the name of a metric");
	double value = name != NULL ? PyFloat_AsDouble(arguments[1]) : -1;
	if (name != NULL && value == -1 && PyErr_ExceptionMatches(PyExc_OverflowError))
		return PyErr_Clear(), Py_NewRef(Py_None);
	if (name == NULL || (value == -1 && PyErr_Occurred()))
		return NULL;
	if (isfinite(value))
		(void)wattle_metric(name, value);
	Py_RETURN_NONE;
}

static PyObject *mark(PyObject *module, PyObject *name)
{
	const char *text = text_of(name, "the name of a mark");
	if (text == NULL)
		return NULL;
	(void)wattle_mark(text);
	Py_RETURN_NONE;
}

static PyObject *range_begin(PyObject *module, PyObject *name)
{
	const char *text = text_of(name, "the name of a range");
	if (text == NULL)
		return NULL;
	uint64_t range;
	(void)wattle_range_begin(text, &range);
	return PyLong_FromUnsignedLongLong(range);
}

// A range begun while nothing was recorded has the number 0; its end does nothing.
static PyObject *range_end(PyObject *module, PyObject *number)
{
	unsigned long long range = PyLong_AsUnsignedLongLong(number);
	if (range == (unsigned long long)-1 && PyErr_Occurred())
		return NULL;
	if (range != 0)
		(void)wattle_range_end(range);
	Py_RETURN_NONE;
}

static PyObject *is_recording(PyObject *module, PyObject *unused)
{
	return PyBool_FromLong(wattle_is_recording());
}

#define SPAN_HELP                                                                                                      \
	"span(name, /)\n--\n\nMarks a code block. The report has its calls, time, CPU time and energy under this name.\n\n"    \
	"    with wattle.span(\"forward\"):         # spans of a thread nest\n"                                        \
	"    @wattle.span(\"train\")                # each call; coroutines and generators too\n"                      \
	"    async with wattle.span(\"request\"):   # other tasks may run meanwhile\n\n"                               \
	"One object can be used repeatedly, recursively and by several threads. An exception ends the block and\n"    \
	"propagates. Names are truncated to 1023 bytes. Without a recorder it does nothing.\n\n"                      \
	"TypeError: the name is not a str. ValueError: it contains NUL or cannot be encoded as UTF-8."
#define METRIC_HELP                                                                                                            \
	"metric(name, value, /)\n--\n\nRecords a number of the program (tokens, images, accuracy) for the blocks that are\n"   \
	"open in this thread.\n\nNon-negative integers count as units of work: their sum inside a block gives joules per\n"    \
	"unit. Infinite values and NaN are ignored. TypeError: the value is not a number, or the name is not a str."

static PyMethodDef functions[] = {
	{"span", span, METH_O, SPAN_HELP},
	{"metric", (PyCFunction)(void (*)(void))metric, METH_FASTCALL, METRIC_HELP},
	{"mark", mark, METH_O,
		"mark(name, /)\n--\n\nRecords an instant (CLOCK_MONOTONIC) as an event of the run.\n\n"
		"TypeError: the name is not a str. ValueError: it contains NUL or cannot be encoded as UTF-8."},
	{"range_begin", range_begin, METH_O,
		"range_begin(name, /)\n--\n\nBegins a range, which may overlap others and end in another thread. "
		"Returns its number for range_end; 0 without a recorder.\n\nTypeError, ValueError: as for span."},
	{"range_end", range_end, METH_O,
		"range_end(number, /)\n--\n\nEnds a range begun by range_begin. Ignores the number of a range that is not open."},
	{"is_recording", is_recording, METH_NOARGS,
		"is_recording()\n--\n\nWhether spans of this process are being recorded."},
	{NULL},
};

int add_span(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
	if (type == NULL)
		return -1;
	state_of_module(module)->types[TYPE_SPAN] = type;
	if (PyModule_AddType(module, (PyTypeObject *)type) < 0 || add_calls(module) < 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}
