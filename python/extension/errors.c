#include "extension.h"

#include "wattle.h"

#include <errno.h>
#include <string.h>

PyObject *text_for_display(const char *sentence)
{
	return PyUnicode_DecodeUTF8(sentence, (Py_ssize_t)strlen(sentence), "backslashreplace");
}

void raise_text(PyObject *type, const char *sentence)
{
	PyObject *text = text_for_display(sentence);
	if (text != NULL)
		PyErr_SetObject(type, text);
	Py_XDECREF(text);
}

// OSError selects a subclass by the code, such as FileNotFoundError. Up to Python 3.10, `except` looks at the type that is
// set here, so the instance is made first.
static void raise_os(int code, const char *sentence)
{
	PyObject *text = text_for_display(sentence);
	PyObject *arguments = text != NULL ? Py_BuildValue("(iN)", -code, text) : NULL;
	PyObject *error = arguments != NULL ? PyObject_CallObject(PyExc_OSError, arguments) : NULL;
	if (error != NULL)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	Py_XDECREF(arguments);
}

PyObject *raise_code(int code, const char *sentence)
{
	if (code == -ENOMEM)
		return PyErr_NoMemory();
	if (sentence == NULL || sentence[0] == '\0')
		sentence = wattle_strerror(code);
	if (code == -EINVAL)
		raise_text(PyExc_ValueError, sentence);
	else
		raise_os(code, sentence);
	return NULL;
}

PyObject *raise_state(int code, const char *sentence)
{
	if (code != -EPERM && code != -EALREADY && code != -EBADF)
		return raise_code(code, sentence);
	raise_text(PyExc_RuntimeError, sentence != NULL && sentence[0] != '\0' ? sentence : wattle_strerror(code));
	return NULL;
}

int path_or_none(PyObject *object, void *ret_bytes)
{
	return object == Py_None ? 1 : PyUnicode_FSConverter(object, ret_bytes);
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
