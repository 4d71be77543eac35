#include "run_object.h"

#include <math.h>

static PyObject *number(int64_t value)
{
	return value_ok(value) ? PyLong_FromLongLong(value) : Py_NewRef(Py_None);
}

// Names of processes and of spans may be any bytes.
static PyObject *text(const char *text)
{
	return text != NULL ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

static PyObject *value(const struct field *field, const void *row)
{
	const void *at = (const char *)row + field->offset;
	switch (field->type) {
	case FIELD_I64:
		return number(*(const int64_t *)at);
	case FIELD_ID:
		return number(*(const int64_t *)at != 0 ? *(const int64_t *)at : VALUE_MISSING);
	case FIELD_I32:
		return number(*(const int32_t *)at != 0 ? *(const int32_t *)at : VALUE_MISSING);
	case FIELD_DOUBLE:
		return !isnan(*(const double *)at) ? PyFloat_FromDouble(*(const double *)at) : Py_NewRef(Py_None);
	case FIELD_TEXT:
		return text(*(const char *const *)at);
	case FIELD_CHARS:
		return text(*(const char *)at != '\0' ? at : NULL);
	case FIELD_BOOL:
		return PyBool_FromLong(*(const bool *)at);
	}
	Py_RETURN_NONE;
}

PyObject *row_dict(const struct field *fields, size_t n_fields, const void *row)
{
	PyObject *dict = PyDict_New();
	for (size_t i = 0; dict != NULL && i < n_fields; i++) {
		PyObject *item = value(&fields[i], row);
		if (item == NULL || PyDict_SetItemString(dict, fields[i].name, item) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(item);
	}
	return dict;
}

PyObject *row_dicts(const struct field *fields, size_t n_fields, const void *rows, size_t n, size_t row_size)
{
	PyObject *list = PyList_New((Py_ssize_t)n);
	for (size_t i = 0; list != NULL && i < n; i++) {
		PyObject *dict = row_dict(fields, n_fields, (const char *)rows + i * row_size);
		if (dict == NULL)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, (Py_ssize_t)i, dict);
	}
	return list;
}
