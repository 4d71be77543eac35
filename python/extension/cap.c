/* Section caps of include/wattle.h as functions; wattle.cap (cap.py) is the public interface. */
#include "cap.h"

#include "lib/cap.h"
#include "wattle.h"

#include <errno.h>
#include <stdio.h>

/* ---- errors and notices ---- */

PyObject *raise_cap(int code)
{
	PyObject *type = NULL;
	if (code == -ERANGE || code == -EINVAL)
		type = PyExc_ValueError;
	else if (code == -ENODEV)
		type = PyExc_LookupError;
	else if (code == -ENODATA || code == -ECANCELED || code == -ESTALE || code == -EBADF)
		type = PyExc_RuntimeError;
	else if (code != -EBUSY)
		return raise_code(code, wattle_cap_error());
	if (type != NULL) {
		raise_text(type, wattle_cap_error());
		return NULL;
	}
	PyObject *text = text_for_display(wattle_cap_error());
	PyObject *arguments = text != NULL ? Py_BuildValue("(iN)", -code, text) : NULL;
	if (arguments != NULL)
		PyErr_SetObject(PyExc_BlockingIOError, arguments);
	Py_XDECREF(arguments);
	return NULL;
}

PyObject *with_notice(PyObject *value, const char *notice)
{
	PyObject *text = value != NULL ? text_for_display(notice != NULL ? notice : wattle_cap_notice()) : NULL;
	if (text == NULL) {
		Py_XDECREF(value);
		return NULL;
	}
	return Py_BuildValue("(NN)", value, text);
}

/* ---- list, get ---- */

static PyObject *row(const struct wattle_cap_device *device)
{
	PyObject *lease = device->lease[0] != '\0' ? text_for_display(device->lease) : Py_NewRef(Py_None);
	PyObject *name = text_for_display(device->name), *why = text_for_display(device->why);
	if (lease == NULL || name == NULL || why == NULL) {
		Py_XDECREF(lease);
		Py_XDECREF(name);
		Py_XDECREF(why);
		return NULL;
	}
	return Py_BuildValue("(sNsdddddNNsNddN)", device->device, name, device->id, device->current_w,
		device->default_w, device->min_w, device->max_w, device->enforced_w, PyBool_FromLong(device->settable),
		why, device->remedy, lease, device->min_mhz, device->max_mhz, PyBool_FromLong(device->clocks_settable));
}

static PyObject *list_devices(PyObject *module, PyObject *unused)
{
	struct wattle_cap_device *all = NULL;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = wattle_cap_list(&all);
	Py_END_ALLOW_THREADS
	if (r < 0)
		return raise_cap(r);
	PyObject *list = PyList_New(0);
	for (const struct wattle_cap_device *device = all; list != NULL && device != NULL; device = device->next) {
		PyObject *item = row(device);
		if (item == NULL || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	wattle_cap_list_free(all);
	return with_notice(list, NULL);
}

static PyObject *get_device(PyObject *module, PyObject *argument)
{
	struct wattle_cap_device device = {.size = sizeof(device)};
	const char *name = text_of(argument, "device");
	int r;
	if (name == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	r = wattle_cap_get(name, &device);
	Py_END_ALLOW_THREADS
	return r < 0 ? raise_cap(r) : with_notice(row(&device), NULL);
}

/* ---- set, reset ---- */

static PyObject *choose_names(PyObject *module, PyObject *arguments)
{
	const char *text;
	int clocks, r;
	char names[4096];
	struct wattle_error error = {0};
	if (!PyArg_ParseTuple(arguments, "sp:cap_names", &text, &clocks))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	r = cap_choose_names(text, clocks ? CAP_CLOCKS : CAP_POWER, names, sizeof(names), &error);
	Py_END_ALLOW_THREADS
	if (r < 0 && (r == -EINVAL || r == -ENODEV)) {
		raise_text(r == -EINVAL ? PyExc_ValueError : PyExc_LookupError, error.text);
		return NULL;
	}
	if (r < 0)
		return raise_code(r, error.text);
	PyObject *all = text_for_display(names);
	PyObject *list = all != NULL ? PyObject_CallMethod(all, "split", "s", ",") : NULL;
	Py_XDECREF(all);
	return list;
}

static PyObject *set_limit(PyObject *module, PyObject *arguments)
{
	const char *device;
	double value;
	int clocks, keep, r;
	if (!PyArg_ParseTuple(arguments, "sdpp:cap_set", &device, &value, &clocks, &keep))
		return NULL;
	unsigned flags = (clocks ? WATTLE_CAP_CLOCKS : 0) | (keep ? WATTLE_CAP_KEEP : 0);
	Py_BEGIN_ALLOW_THREADS
	r = wattle_cap_set(device, value, flags);
	Py_END_ALLOW_THREADS
	return r < 0 ? raise_cap(r) : with_notice(Py_NewRef(Py_None), NULL);
}

// clocks None: resets both, and a device without a clock limit is no error.
static PyObject *reset_limit(PyObject *module, PyObject *arguments)
{
	const char *device;
	PyObject *clocks;
	int to_default, is_true = 0, of_clocks = 0, r;
	char notice[2048] = "";
	if (!PyArg_ParseTuple(arguments, "sOp:cap_reset", &device, &clocks, &to_default))
		return NULL;
	bool both = clocks == Py_None;
	if (!both && (is_true = PyObject_IsTrue(clocks)) < 0)
		return NULL;
	unsigned flags = to_default ? WATTLE_CAP_DEFAULT : 0;
	Py_BEGIN_ALLOW_THREADS
	if (both) {
		of_clocks = wattle_cap_reset(device, flags | WATTLE_CAP_CLOCKS);
		(void)snprintf(notice, sizeof(notice), "%s", wattle_cap_notice());
	}
	r = wattle_cap_reset(device, flags | (is_true ? WATTLE_CAP_CLOCKS : 0));
	// A user with permission for power but not for clocks has no clock limit to reset. For other failures, the second
	// call sets the error message.
	if (r == 0 && of_clocks < 0 && of_clocks != -ENODEV && of_clocks != -EACCES && of_clocks != -EPERM)
		r = wattle_cap_reset(device, flags | WATTLE_CAP_CLOCKS);
	Py_END_ALLOW_THREADS
	if (r < 0)
		return raise_cap(r);
	size_t used = strlen(notice);
	(void)snprintf(notice + used, sizeof(notice) - used, "%s%s",
		used > 0 && wattle_cap_notice()[0] != '\0' ? "; " : "", wattle_cap_notice());
	return with_notice(Py_NewRef(Py_None), notice);
}

static PyObject *configure_session(PyObject *module, PyObject *argument)
{
	const char *name = text_of(argument, "name");
	if (name == NULL)
		return NULL;
	PyObject *program = program_of_package(module);
	cap_session_configure(program != NULL ? PyBytes_AsString(program) : NULL, name);
	Py_XDECREF(program);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"cap_list", list_devices, METH_NOARGS, "All devices that can be limited, and a notice."},
	{"cap_get", get_device, METH_O, "One device, and a notice."},
	{"cap_names", choose_names, METH_VARARGS, "Names of the devices that a text selects."},
	{"cap_set", set_limit, METH_VARARGS, "Sets a limit: device, value, clocks, keep."},
	{"cap_reset", reset_limit, METH_VARARGS,
		"Restores the previous limit: device, clocks or None, whether to the default."},
	{"cap_tune", (PyCFunction)(void (*)(void))cap_tune, METH_VARARGS | METH_KEYWORDS,
		"Searches for the best limit."},
	{"cap_introduce", configure_session, METH_O, "Sets the name under which leases show their owner."},
	{NULL},
};

int add_cap(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
