#include "run_object.h"

// Decodes names of processes and spans, which may be any bytes.
static PyObject *text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *value(const struct field *field, const struct object_at *row, struct buf *scratch)
{
	struct field_value value = field_value(field, row, scratch);
	if (!value.known)
		return Py_NewRef(Py_None);
	if (value.type == FIELD_IS_NUMBER)
		return PyFloat_FromDouble(value.number);
	if (value.type == FIELD_IS_BOOLEAN)
		return PyBool_FromLong(value.boolean);
	if (value.type == FIELD_IS_TEXT)
		return text(value.text);
	return PyLong_FromLongLong(value.integer);
}

PyObject *row_dict(const struct field *fields, size_t n_fields, const void *row)
{
	const struct object_at at = {.data = row};
	struct buf scratch;
	PyObject *dict = PyDict_New();
	buf_init(&scratch, 1 << 20);
	for (size_t i = 0; dict != NULL && i < n_fields; i++) {
		PyObject *item = value(&fields[i], &at, &scratch);
		if (item == NULL || PyDict_SetItemString(dict, fields[i].key, item) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(item);
	}
	buf_finish(&scratch);
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
