/* The module wattle._wattle: include/wattle.h and stored runs for Python. python/wattle/_wattle.pyi declares its
 * interface. */
#include "extension.h"

// Code block statistics with their JSON keys; those of call times include the unit.
static PyObject *block_columns(void)
{
	static const char *const names[] = {
#define BLOCK_COUNT(member, key, ...) key,
#define BLOCK_FIGURE(member, ...) #member,
#define BLOCK_TIME(part, ...) #part "_s",
#define BLOCK_DERIVED(getter, ...) #getter,
#include "metric/blocks.def"
	};
	PyObject *tuple = PyTuple_New(ARRAY_SIZE(names));
	for (size_t i = 0; tuple != NULL && i < ARRAY_SIZE(names); i++) {
		PyObject *name = PyUnicode_FromString(names[i]);
		if (name == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, name) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

static int add_constant(PyObject *module, const char *name, PyObject *value)
{
	int r = value != NULL ? module_add(module, name, value) : -1;
	Py_XDECREF(value);
	return r;
}

static int execute(PyObject *module)
{
	static int (*const add[])(PyObject *) = {add_span, add_tracker, add_meter, add_buffer, add_run, add_files,
		add_gpus, add_cap, add_carbon, add_sub_tracking};
	for (size_t i = 0; i < ARRAY_SIZE(add); i++)
		if (add[i](module) < 0)
			return -1;
	if (add_constant(module, "MISSING", PyLong_FromLongLong(VALUE_MISSING)) < 0 ||
		add_constant(module, "BLOCK_COLUMNS", block_columns()) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "VERSION", WATTLE_VERSION);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct state *state = state_of_module(module);
	if (state == NULL)
		return 0;
	for (size_t i = 0; i < TYPES; i++)
		Py_VISIT(state->types[i]);
	Py_VISIT(state->ranges);
	return 0;
}

static int clear(PyObject *module)
{
	struct state *state = state_of_module(module);
	if (state == NULL)
		return 0;
	for (size_t i = 0; i < TYPES; i++)
		Py_CLEAR(state->types[i]);
	Py_CLEAR(state->ranges);
	return 0;
}

static void release(void *module)
{
	(void)clear(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "wattle._wattle",
	.m_doc = "The C side of wattle; use the package wattle.",
	.m_size = sizeof(struct state),
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
	.m_free = release,
};

struct state *state_of_module(PyObject *module)
{
	return PyModule_GetState(module);
}

struct state *state_of(PyTypeObject *type)
{
	return PyType_GetModuleState(type);
}

PyMODINIT_FUNC PyInit__wattle(void);
PyMODINIT_FUNC PyInit__wattle(void)
{
	return PyModuleDef_Init(&definition);
}
