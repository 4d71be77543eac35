/* Buffer: exports numbers of a run through the buffer protocol. */
#include "run_object.h"

struct buffer {
	PyObject_HEAD PyObject *owner; // keeps the data alive
	const void *data;
	const char *format;
	Py_ssize_t item_size, shape[1], strides[1];
};

static struct buffer *as_buffer(PyObject *object)
{
	return (struct buffer *)object;
}

static int get(PyObject *self, Py_buffer *view, int flags)
{
	struct buffer *buffer = as_buffer(self);
	bool is_dense = buffer->strides[0] == buffer->item_size;
	view->obj = NULL;
	if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
		PyErr_SetString(PyExc_BufferError, "the numbers of a run are read-only");
		return -1;
	}
	bool wants_dense = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
		(flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS ||
		(flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS || (flags & PyBUF_STRIDES) != PyBUF_STRIDES;
	if (wants_dense && !is_dense) {
		PyErr_SetString(PyExc_BufferError, "this column is part of a table and does not lie in a row");
		return -1;
	}
	*view = (Py_buffer){
		.buf = (void *)(uintptr_t)buffer->data,
		.obj = Py_NewRef(self),
		.len = buffer->shape[0] * buffer->item_size,
		.itemsize = buffer->item_size,
		.readonly = 1,
		.ndim = 1,
		.format = (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)buffer->format : NULL,
		.shape = (flags & PyBUF_ND) != 0 ? buffer->shape : NULL,
		.strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? buffer->strides : NULL,
	};
	return 0;
}

static Py_ssize_t length(PyObject *self)
{
	return as_buffer(self)->shape[0];
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(as_buffer(self)->owner);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	PyErr_SetString(PyExc_TypeError, "cannot create 'wattle._wattle.Buffer' instances");
	return NULL;
}

static PyType_Slot type_slots[] = {
	{Py_tp_new, (void *)refuse_new}, // 3.9 has no Py_TPFLAGS_DISALLOW_INSTANTIATION
	{Py_tp_doc,
		"Numbers of a stored run, read-only, by the buffer protocol: numpy.asarray() and memoryview() copy nothing."},
	{Py_tp_dealloc, (void *)dealloc},
	{Py_sq_length, (void *)length},
	{Py_bf_getbuffer, (void *)get},
	{0, NULL},
};

static PyType_Spec type_spec = {"wattle._wattle.Buffer", sizeof(struct buffer), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, type_slots};

static PyObject *buffer_new(const struct state *state, PyObject *owner, const struct column_view *column)
{
	static const int64_t nothing;
	struct buffer *buffer = PyObject_New(struct buffer, (PyTypeObject *)state->types[TYPE_BUFFER]);
	if (buffer == NULL)
		return NULL;
	buffer->owner = Py_NewRef(owner);
	buffer->data = column->n > 0 ? column->data : &nothing;
	buffer->format = column->format;
	buffer->item_size = column->format[0] == 'i' ? 4 : 8;
	buffer->shape[0] = (Py_ssize_t)column->n;
	buffer->strides[0] = (Py_ssize_t)column->stride;
	return (PyObject *)buffer;
}

/* ---- Column: numbers with a description ---- */

static PyStructSequence_Field column_fields[] = {
	{"name", "name as in the run file; ends in the unit"},
	{"unit", "unit of the numbers; '': none"},
	{"meaning", "meaning of the numbers"},
	{"buffer", "the numbers; MISSING: unknown"},
	{NULL, NULL},
};

static PyStructSequence_Desc column_description = {"wattle.Column", "A column of a stored run.", column_fields, 4};

static PyObject *text(const char *text)
{
	return PyUnicode_FromString(text != NULL ? text : "");
}

PyObject *column_new(const struct state *state, PyObject *owner, const struct column_view *column)
{
	PyObject *object = PyStructSequence_New((PyTypeObject *)state->types[TYPE_COLUMN]);
	PyObject *members[] = {text(column->name), text(column->unit), text(column->meaning),
		buffer_new(state, owner, column)};
	bool whole = object != NULL;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		whole = whole && members[i] != NULL;
		if (object != NULL)
			PyStructSequence_SetItem(object, (Py_ssize_t)i, members[i]); // steals the reference; NULL is allowed
		else
			Py_XDECREF(members[i]);
	}
	if (!whole)
		Py_CLEAR(object);
	return object;
}

bool column_append(const struct state *state, PyObject *list, PyObject *owner, const struct column_view *column)
{
	PyObject *item = column_new(state, owner, column);
	int r = item != NULL ? PyList_Append(list, item) : -1;
	Py_XDECREF(item);
	return r == 0;
}

int add_buffer(PyObject *module)
{
	struct state *state = state_of_module(module);
	state->types[TYPE_BUFFER] = PyType_FromModuleAndSpec(module, &type_spec, NULL);
	state->types[TYPE_COLUMN] = (PyObject *)PyStructSequence_NewType(&column_description);
	if (state->types[TYPE_BUFFER] == NULL || state->types[TYPE_COLUMN] == NULL ||
		PyModule_AddType(module, (PyTypeObject *)state->types[TYPE_BUFFER]) < 0)
		return -1;
	return module_add(module, "Column", state->types[TYPE_COLUMN]);
}
