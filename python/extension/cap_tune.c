/* wattle_cap_tune with Python callbacks: step, synchronize and progress. The callbacks hold the GIL; it is released while
 * the search waits for counters and sets limits. */
#include "cap.h"

#include "wattle.h"

#include <math.h>

enum { RAISED = WATTLE_CAP_NO_MORE + 1 }; // the thread has a Python exception set

struct callbacks {
	PyObject *step, *synchronize, *progress; // borrowed; None: none
	PyThreadState *thread;                   // of this thread, while it does not hold the GIL
	bool has_raised;                         // an exception in synchronize, which has no return value
};

static int call_step(void *data)
{
	struct callbacks *callbacks = data;
	if (callbacks->has_raised)
		return RAISED;
	PyEval_RestoreThread(callbacks->thread);
	PyObject *result = PyObject_CallNoArgs(callbacks->step);
	int r = 0;
	if (result == NULL && PyErr_ExceptionMatches(PyExc_StopIteration)) {
		PyErr_Clear();
		r = WATTLE_CAP_NO_MORE;
	} else if (result == NULL || PyErr_CheckSignals() < 0) {
		r = RAISED;
	}
	Py_XDECREF(result);
	callbacks->thread = PyEval_SaveThread();
	return r;
}

static void call_synchronize(void *data)
{
	struct callbacks *callbacks = data;
	if (callbacks->has_raised)
		return;
	PyEval_RestoreThread(callbacks->thread);
	PyObject *result = PyObject_CallNoArgs(callbacks->synchronize);
	callbacks->has_raised = result == NULL;
	Py_XDECREF(result);
	callbacks->thread = PyEval_SaveThread();
}

static int call_progress(void *data, const struct wattle_cap_progress *progress)
{
	struct callbacks *callbacks = data;
	if (callbacks->has_raised)
		return RAISED;
	PyEval_RestoreThread(callbacks->thread);
	PyObject *result = PyObject_CallFunction(callbacks->progress, "dddK", progress->done, progress->seconds_left,
		progress->limit, (unsigned long long)progress->steps);
	int r = result != NULL ? 0 : RAISED;
	Py_XDECREF(result);
	callbacks->thread = PyEval_SaveThread();
	return r;
}

/* ---- the result ---- */

static PyObject *interval(const struct wattle_cap_interval *from)
{
	return Py_BuildValue("(ddd)", from->value, from->low, from->high);
}

// A list of the n items that `make` returns.
static PyObject *list_of(size_t n, const void *data, PyObject *(*make)(const void *data, size_t i))
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list != NULL && i < n; i++) {
		PyObject *item = make(data, i);
		if (item == NULL || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyObject *limit(const void *data, size_t i)
{
	const struct wattle_cap_limit *from = ((const struct wattle_cap_tune_result *)data)->limits[i];
	return Py_BuildValue("(dKdddNNNNN)", from->limit, (unsigned long long)from->windows, from->steps,
		from->energy_j, from->time_s, interval(&from->objective), interval(&from->energy_per_step_j),
		interval(&from->time_per_step_s), PyBool_FromLong(from->allowed), PyBool_FromLong(from->added));
}

static PyObject *parameter(const void *data, size_t i)
{
	return PyFloat_FromDouble(((const struct wattle_cap_tune_result *)data)->parameters[i]);
}

static PyObject *point(const void *data, size_t i)
{
	const struct wattle_cap_tune_result *result = data;
	return Py_BuildValue("(dd)", result->curve_limit[i], result->curve_objective[i]);
}

static PyObject *result_of(const struct wattle_cap_tune_result *r)
{
	PyObject *note = text_for_display(r->note);
	if (note == NULL)
		return NULL;
	return Py_BuildValue("{s:d,s:d,s:N,s:N,s:N,s:s,s:s,s:s,s:d,s:d,s:d,s:N,s:N,s:N,s:N}", "chosen", r->chosen,
		"previous", r->previous, "saving_percent", interval(&r->saving_percent), "slowdown_percent",
		interval(&r->slowdown_percent), "chosen_range", interval(&r->chosen_range), "objective", r->objective,
		"objective_unit", r->objective_unit, "model", r->model, "residual_percent", r->residual_percent,
		"noise_percent", r->noise_percent, "drift_percent", r->drift_percent, "note", note, "limits",
		list_of(r->n_limits, r, limit), "parameters", list_of(r->n_parameters, r, parameter), "curve",
		list_of(r->n_curve, r, point));
}

/* ---- the call ---- */

static bool is_callable_or_none(PyObject *object, const char *what)
{
	if (object == Py_None || PyCallable_Check(object))
		return true;
	PyErr_Format(PyExc_TypeError, "%s must be callable, not %R", what, (PyObject *)Py_TYPE(object));
	return false;
}

static PyObject *search(const char *device, struct wattle_cap_tune_options *options, struct callbacks *callbacks)
{
	struct wattle_cap_tune_result result = {.size = sizeof(result)};
	options->progress = callbacks->progress != Py_None ? call_progress : NULL;
	options->synchronize = callbacks->synchronize != Py_None ? call_synchronize : NULL;
	callbacks->thread = PyEval_SaveThread();
	int r = wattle_cap_tune(device, options, call_step, callbacks, &result);
	PyEval_RestoreThread(callbacks->thread);
	PyObject *found = NULL;
	if (PyErr_Occurred() == NULL)
		found = r < 0 ? raise_cap(r) : with_notice(result_of(&result), NULL);
	if (r == 0)
		wattle_cap_tune_result_finish(&result);
	return found;
}

PyObject *cap_tune(PyObject *module, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"device", "step", "goal", "slowdown_percent", "n_limits", "from_percent", "seconds",
		"settle_s", "seed", "clocks", "synchronize", "progress", NULL};
	struct wattle_cap_tune_options o = {.size = sizeof(o)};
	struct callbacks callbacks = {.synchronize = Py_None, .progress = Py_None};
	const char *device;
	Py_ssize_t n_limits = 0;
	unsigned long long seed = 0;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO|$idndddKpOO:cap_tune", names, &device,
		    &callbacks.step, &o.goal, &o.slowdown_percent, &n_limits, &o.from_percent, &o.seconds, &o.settle_s,
		    &seed, &o.clocks, &callbacks.synchronize, &callbacks.progress))
		return NULL;
	if (!is_callable_or_none(callbacks.step, "step") ||
		!is_callable_or_none(callbacks.synchronize, "synchronize") ||
		!is_callable_or_none(callbacks.progress, "progress"))
		return NULL;
	o.n_limits = n_limits >= 0 ? (size_t)n_limits : 1; // the C library takes 0 as its default
	o.seed = seed;
	return search(device, &o, &callbacks);
}
