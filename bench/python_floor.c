/* The floor of a span in Python: the simplest context manager in C that records when its block began and ended. Two
 * clock readings, two stores into an array that nobody reads; no name, no thread, no check. */
#include "../python/extension/limited_api.h"

#include <time.h>

enum { TIMES = 1 << 16 };

struct state {
	PyTypeObject *type;
};

struct block {
	PyObject_HEAD PyObject *name;
};

static struct timespec times[TIMES];
static unsigned n_times;

static void note(void)
{
	clock_gettime(CLOCK_MONOTONIC, &times[n_times++ % TIMES]);
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
	note();
	return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
	note();
	Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF(((struct block *)self)->name);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{"__enter__", enter, METH_NOARGS, NULL},
	{"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
	{NULL},
};

static PyType_Slot type_slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_methods, methods}, {0, NULL}};

static PyType_Spec type_spec = {"python_floor.Block", sizeof(struct block), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, type_slots};

static PyObject *block(PyObject *module, PyObject *name)
{
	struct block *object = PyObject_New(struct block, ((struct state *)PyModule_GetState(module))->type);
	if (object != NULL)
		object->name = Py_NewRef(name);
	return (PyObject *)object;
}

static PyMethodDef functions[] = {{"block", block, METH_O, NULL}, {NULL}};

static int execute(PyObject *module)
{
	struct state *state = PyModule_GetState(module);
	state->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &type_spec, NULL);
	return state->type != NULL ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "python_floor",
	.m_size = sizeof(struct state),
	.m_methods = functions,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit_python_floor(void);
PyMODINIT_FUNC PyInit_python_floor(void)
{
	return PyModuleDef_Init(&definition);
}
