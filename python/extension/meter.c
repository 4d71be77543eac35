/* Meter: section meter of include/wattle.h as an object. wattle.Meter (meter.py) is the public interface. */
#include "extension.h"

#include "wattle.h"

#include <errno.h>

struct meter {
	PyObject_HEAD wattle_meter *meter; // owned; NULL: closed
	bool is_busy;                      // another thread is reading it without the GIL
};

static struct meter *as_meter(PyObject *object)
{
	return (struct meter *)object;
}

/* ---- readings ---- */

static PyStructSequence_Field reading_fields[] = {
	{"seconds", "since start, CLOCK_MONOTONIC"},
	{"cpu_j", "J of all packages; NaN: unknown, also for the following fields"},
	{"dram_j", "J of all memory domains"},
	{"gpu_j", "J of the chosen GPUs"},
	{"total_j", "J of the outermost domains that do not overlap"},
	{"error_j", "half of a 95 % interval of total_j, J"},
	{"estimated", "whether a part is estimated by a model"},
	{"calibration_error_j", "additional error from the gain of GPU power sensors, J; NaN: no GPU is measured"},
	{NULL, NULL},
};

static PyStructSequence_Desc reading_description = {"wattle.Reading", "Energy of the machine since start.",
	reading_fields, ARRAY_SIZE(reading_fields) - 1};

static PyObject *reading_new(const struct state *state, const struct wattle_reading *reading)
{
	const double numbers[] = {reading->seconds, reading->cpu_j, reading->dram_j, reading->gpu_j, reading->total_j,
		reading->error_j};
	PyObject *object = PyStructSequence_New((PyTypeObject *)state->types[TYPE_READING]);
	for (size_t i = 0; object != NULL && i < ARRAY_SIZE(numbers); i++) {
		PyObject *number = PyFloat_FromDouble(numbers[i]);
		if (number == NULL)
			Py_CLEAR(object);
		else
			PyStructSequence_SetItem(object, (Py_ssize_t)i, number);
	}
	if (object != NULL)
		PyStructSequence_SetItem(object, ARRAY_SIZE(numbers), PyBool_FromLong(reading->estimated));
	PyObject *calibration = object != NULL ? PyFloat_FromDouble(reading->calibration_error_j) : NULL;
	if (calibration == NULL)
		Py_CLEAR(object);
	else
		PyStructSequence_SetItem(object, ARRAY_SIZE(numbers) + 1, calibration);
	return object;
}

/* ---- calls ---- */

static int init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"gpus", "gpu_brand", NULL};
	struct wattle_meter_options options = {.size = sizeof(options)};
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$zz:Meter", names, &options.gpus, &options.gpu_brand))
		return -1;
	if (as_meter(self)->meter != NULL) {
		PyErr_SetString(PyExc_RuntimeError, "the meter is open already");
		return -1;
	}
	wattle_meter *meter = NULL;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = wattle_meter_open(&options, &meter);
	Py_END_ALLOW_THREADS
	if (r < 0) {
		(void)raise_code(r, NULL);
		return -1;
	}
	as_meter(self)->meter = meter;
	return 0;
}

// Locks the meter for one thread; false with an exception.
static bool take(PyObject *self)
{
	if (as_meter(self)->meter == NULL || as_meter(self)->is_busy) {
		PyErr_SetString(PyExc_RuntimeError,
			as_meter(self)->meter == NULL ? "the meter is closed" : "another thread is reading this meter");
		return false;
	}
	as_meter(self)->is_busy = true;
	return true;
}

static PyObject *start(PyObject *self, PyObject *unused)
{
	if (!take(self))
		return NULL;
	wattle_meter *meter = as_meter(self)->meter;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = wattle_meter_start(meter);
	Py_END_ALLOW_THREADS
	as_meter(self)->is_busy = false;
	if (r < 0)
		return raise_state(r, NULL);
	Py_RETURN_NONE;
}

static PyObject *take_reading(PyObject *self, int (*how)(wattle_meter *, struct wattle_reading *))
{
	if (!take(self))
		return NULL;
	wattle_meter *meter = as_meter(self)->meter;
	struct wattle_reading reading = {.size = sizeof(reading)};
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = how(meter, &reading);
	Py_END_ALLOW_THREADS
	as_meter(self)->is_busy = false;
	if (r < 0)
		return raise_state(r, r == -EPERM ? "the meter has not been started" : NULL);
	return reading_new(state_of(Py_TYPE(self)), &reading);
}

static PyObject *read_meter(PyObject *self, PyObject *unused)
{
	return take_reading(self, wattle_meter_read);
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
	return take_reading(self, wattle_meter_stop);
}

// A list of (name, energy_j, error_j) as of the latest reading. It reads no counter, so it keeps the GIL.
static PyObject *domains(PyObject *self, PyObject *unused)
{
	if (!take(self))
		return NULL;
	struct wattle_domain_reading one = {.size = sizeof(one)};
	PyObject *list = PyList_New(0);
	int r = 0;
	for (size_t i = 0; list != NULL && (r = wattle_meter_domain(as_meter(self)->meter, i, &one)) == 0; i++) {
		PyObject *row = Py_BuildValue("(sdd)", one.domain, one.energy_j, one.error_j);
		if (row == NULL || PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	as_meter(self)->is_busy = false;
	if (list == NULL || r == -ENOENT)
		return list;
	Py_DECREF(list);
	return raise_state(r, r == -EPERM ? "the meter has not been read since start" : NULL);
}

static PyObject *close_meter(PyObject *self, PyObject *unused)
{
	if (as_meter(self)->is_busy) {
		PyErr_SetString(PyExc_RuntimeError, "another thread is reading this meter");
		return NULL;
	}
	wattle_meter *meter = as_meter(self)->meter;
	as_meter(self)->meter = NULL;
	wattle_meter_close(meter);
	Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	wattle_meter_close(as_meter(self)->meter);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{"start", start, METH_NOARGS, "Reads the counters as the start of the measurement."},
	{"read", read_meter, METH_NOARGS, "Energy since start; the measurement continues."},
	{"stop", stop, METH_NOARGS, "Energy since start; ends the measurement."},
	{"domains", domains, METH_NOARGS, "(name, energy_j, error_j) of each domain at the latest reading."},
	{"close", close_meter, METH_NOARGS, "Closes the counters."},
	{NULL},
};

static PyType_Slot type_slots[] = {
	{Py_tp_doc, "The machine's energy counters; see wattle.Meter."},
	{Py_tp_new, (void *)PyType_GenericNew},
	{Py_tp_init, (void *)init},
	{Py_tp_dealloc, (void *)dealloc},
	{Py_tp_methods, methods},
	{0, NULL},
};

static PyType_Spec type_spec = {"wattle._wattle.Meter", sizeof(struct meter), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, type_slots};

int add_meter(PyObject *module)
{
	struct state *state = state_of_module(module);
	state->types[TYPE_METER] = PyType_FromModuleAndSpec(module, &type_spec, NULL);
	state->types[TYPE_READING] = (PyObject *)PyStructSequence_NewType(&reading_description);
	if (state->types[TYPE_METER] == NULL || state->types[TYPE_READING] == NULL ||
		PyModule_AddType(module, (PyTypeObject *)state->types[TYPE_METER]) < 0)
		return -1;
	return module_add(module, "Reading", state->types[TYPE_READING]);
}
