/* Carbon intensities by country, of metric/carbon.def. */
#include "extension.h"

#include "metric/carbon.h"

static PyObject *row(const struct carbon_region *region)
{
	return Py_BuildValue("(sssdi)", region->code, region->code3, region->name, region->g_per_kwh, region->year);
}

static PyObject *all(PyObject *module, PyObject *unused)
{
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list != NULL && i < n_carbon_regions; i++) {
		PyObject *item = row(&carbon_regions[i]);
		if (item == NULL || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyObject *find(PyObject *module, PyObject *wanted)
{
	const struct carbon_region *region;
	struct wattle_error error;
	const char *text = text_of(wanted, "the region");
	if (text == NULL)
		return NULL;
	int r = carbon_region_find("region", text, &region, &error);
	return r < 0 ? raise_code(r, error.text) : row(region);
}

int add_carbon(PyObject *module)
{
	static PyMethodDef functions[] = {{"carbon_regions", all, METH_NOARGS, NULL},
		{"carbon_region", find, METH_O, NULL}, {NULL, NULL, 0, NULL}};
	if (PyModule_AddFunctions(module, functions) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "CARBON_SOURCE", carbon_source);
}
