#include "extension.h"

#include "wattle.h"

#include <errno.h>
#include <string.h>

static PyObject *raise_os(int code, const char *sentence)
{
	PyObject *arguments = Py_BuildValue("(is)", -code, sentence);
	if (arguments != NULL) {
		PyErr_SetObject(PyExc_OSError,
			arguments); // called with a code it becomes FileNotFoundError and the like
		Py_DECREF(arguments);
	}
	return NULL;
}

PyObject *raise_code(int code, const char *sentence)
{
	if (code == -ENOMEM)
		return PyErr_NoMemory();
	if (sentence == NULL || sentence[0] == '\0')
		sentence = wattle_strerror(code);
	if (code != -EINVAL)
		return raise_os(code, sentence);
	PyErr_SetString(PyExc_ValueError, sentence);
	return NULL;
}

PyObject *raise_error(const struct wattle_error *error)
{
	return raise_code(error->code, error->text);
}

PyObject *raise_state(int code, const char *sentence)
{
	if (code != -EPERM && code != -EALREADY && code != -EBADF)
		return raise_code(code, sentence);
	PyErr_SetString(PyExc_RuntimeError, sentence != NULL && sentence[0] != '\0' ? sentence : wattle_strerror(code));
	return NULL;
}

const char *text_of(PyObject *object, const char *what)
{
	if (!PyUnicode_Check(object)) {
		PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, (PyObject *)Py_TYPE(object));
		return NULL;
	}
	Py_ssize_t size;
	const char *text = PyUnicode_AsUTF8AndSize(object, &size);
	if (text != NULL && strlen(text) != (size_t)size) {
		PyErr_Format(PyExc_ValueError, "%s must not contain a NUL character", what);
		return NULL;
	}
	return text;
}
