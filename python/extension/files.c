/* Functions on files: gpu_tracker's files, comparisons, exports. */
#include "extension.h"

#include "base/arena.h"
#include "base/buf.h"
#include "report/documents.h"
#include "store/sub_tracking.h"
#include "task/task.h"

#include <errno.h>

enum { DOCUMENT_CEILING = 1 << 30 };

// Returns the text, or raises the exception; finishes `out`.
static PyObject *text_or_raise(int r, const struct wattle_error *error, struct buf *out)
{
	r = r == 0 ? out->failed : r;
	PyObject *text = NULL;
	if (r == 0)
		text = PyUnicode_DecodeUTF8(out->data, (Py_ssize_t)out->size, "replace");
	else
		(void)raise_code(r, error->text);
	buf_finish(out);
	return text;
}

/* ---- gpu_tracker's files ---- */

static int write_tracking(const char *tracking, const char *sub_tracking, struct buf *out, struct wattle_error *error)
{
	struct arena *arena = arena_new();
	struct tracking_findings findings;
	int r = arena != NULL ? tracking_files_blocks(tracking, sub_tracking, arena, &findings, error) : -ENOMEM;
	if (r == 0)
		tracking_blocks_json(&findings, out);
	arena_free(arena);
	return r;
}

static PyObject *tracking_blocks(PyObject *module, PyObject *arguments)
{
	PyObject *tracking = NULL, *sub_tracking = NULL;
	if (!PyArg_ParseTuple(arguments, "O&O&:tracking_blocks_json", path_or_none, &tracking, PyUnicode_FSConverter,
		    &sub_tracking)) {
		Py_XDECREF(tracking);
		return NULL;
	}
	const char *paths[] = {tracking != NULL ? PyBytes_AsString(tracking) : NULL, PyBytes_AsString(sub_tracking)};
	struct wattle_error error = {0};
	struct buf out;
	int r;
	buf_init(&out, DOCUMENT_CEILING);
	Py_BEGIN_ALLOW_THREADS
	r = write_tracking(paths[0], paths[1], &out, &error);
	Py_END_ALLOW_THREADS
	Py_XDECREF(tracking);
	Py_DECREF(sub_tracking);
	return text_or_raise(r, &error, &out);
}

/* ---- comparisons ---- */

struct comparing {
	struct named_file *files;
	size_t n;
	PyObject *keep; // owners of borrowed strings
	const char *statistic;
};

static bool is_statistic(const char *text)
{
	static const char *const statistics[] = {"min", "max", "mean", "std"};
	for (size_t i = 0; i < ARRAY_SIZE(statistics); i++)
		if (strcmp(text, statistics[i]) == 0)
			return true;
	PyErr_Format(PyExc_ValueError, "the statistic is '%s', but must be min, max, mean or std", text);
	return false;
}

// Parses the i-th pair of the list; appends owners of borrowed strings to `keep`.
static bool take_pair(PyObject *pair, PyObject *keep, struct named_file *ret_file)
{
	PyObject *bytes = NULL, *name;
	if (!PyTuple_Check(pair)) {
		PyErr_SetString(PyExc_TypeError, "runs must be pairs of a name and a path");
		return false;
	}
	if (!PyArg_ParseTuple(pair, "OO&;runs must be pairs of a name and a path", &name,
		    PyUnicode_FSConverter, &bytes))
		return false;
	ret_file->name = text_of(name, "a name");
	ret_file->file = PyBytes_AsString(bytes);
	bool kept = ret_file->name != NULL && PyList_Append(keep, bytes) == 0 && PyList_Append(keep, name) == 0;
	Py_DECREF(bytes);
	return kept;
}

static bool names_differ(const struct comparing *comparing)
{
	for (size_t i = 0; i < comparing->n; i++)
		for (size_t k = i + 1; k < comparing->n; k++)
			if (strcmp(comparing->files[i].name, comparing->files[k].name) == 0) {
				PyErr_Format(PyExc_ValueError, "the name '%s' is given twice",
					comparing->files[i].name);
				return false;
			}
	return true;
}

static bool take_pairs(PyObject *pairs, struct comparing *comparing)
{
	PyObject *list = PySequence_List(pairs);
	comparing->keep = list != NULL ? PyList_New(0) : NULL;
	comparing->n = list != NULL ? (size_t)PyList_Size(list) : 0;
	comparing->files = calloc_array(comparing->n, sizeof(*comparing->files));
	if (comparing->files == NULL)
		(void)PyErr_NoMemory();
	bool taken = comparing->keep != NULL && comparing->files != NULL;
	for (size_t i = 0; taken && i < comparing->n; i++)
		taken = take_pair(PyList_GetItem(list, (Py_ssize_t)i), comparing->keep, &comparing->files[i]);
	Py_XDECREF(list);
	if (taken && comparing->n < 2) {
		PyErr_SetString(PyExc_ValueError, "at least two are needed for a comparison");
		return false;
	}
	return taken && names_differ(comparing);
}

static int write_comparison(const struct comparing *comparing, struct buf *out, struct buf *warnings,
	struct wattle_error *error)
{
	struct arena *arena = arena_new();
	struct comparison comparison;
	int r = arena != NULL
		? compare_files(comparing->files, comparing->n, comparing->statistic, arena, &comparison, error)
		: -ENOMEM;
	if (r == 0) {
		compare_json(&comparison, out);
		for (size_t i = 0; i < comparison.n_warnings; i++)
			buf_printf(warnings, "%s\n", comparison.warnings[i]);
		r = warnings->failed;
	}
	arena_free(arena);
	return r;
}

// Issues each line as a Python warning.
static bool warn(const struct buf *warnings)
{
	PyObject *text = PyUnicode_DecodeUTF8(warnings->data != NULL ? warnings->data : "", (Py_ssize_t)warnings->size,
		"replace");
	PyObject *lines = text != NULL ? PyUnicode_Splitlines(text, 0) : NULL;
	Py_ssize_t n = lines != NULL ? PyList_Size(lines) : -1;
	for (Py_ssize_t i = 0; i < n; i++)
		if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%U", PyList_GetItem(lines, i)) < 0)
			n = -1;
	Py_XDECREF(text);
	Py_XDECREF(lines);
	return n >= 0;
}

static PyObject *compare(PyObject *module, PyObject *arguments)
{
	PyObject *pairs;
	struct comparing comparing = {.statistic = "mean"};
	if (!PyArg_ParseTuple(arguments, "O|s:compare_json", &pairs, &comparing.statistic) ||
		!is_statistic(comparing.statistic))
		return NULL;
	PyObject *text = NULL;
	if (take_pairs(pairs, &comparing)) {
		struct wattle_error error = {0};
		struct buf out, warnings;
		int r;
		buf_init(&out, DOCUMENT_CEILING);
		buf_init(&warnings, DOCUMENT_CEILING);
		Py_BEGIN_ALLOW_THREADS
		r = write_comparison(&comparing, &out, &warnings, &error);
		Py_END_ALLOW_THREADS
		text = text_or_raise(r, &error, &out);
		if (text != NULL && !warn(&warnings))
			Py_CLEAR(text);
		buf_finish(&warnings);
	}
	free(comparing.files);
	Py_XDECREF(comparing.keep);
	return text;
}

/* ---- file conversion ---- */

static PyObject *merge(PyObject *module, PyObject *arguments)
{
	PyObject *out = NULL, *inputs, *list = NULL;
	if (!PyArg_ParseTuple(arguments, "O&O:merge", PyUnicode_FSConverter, &out, &inputs))
		return NULL;
	if (PyUnicode_Check(inputs) || PyBytes_Check(inputs))
		PyErr_SetString(PyExc_TypeError, "the inputs must be a sequence of paths, not one path");
	else
		list = PySequence_List(inputs);
	Py_ssize_t n = list != NULL ? PyList_Size(list) : 0;
	const char **paths = calloc_array((size_t)n, sizeof(*paths));
	if (paths == NULL)
		(void)PyErr_NoMemory();
	bool taken = list != NULL && paths != NULL;
	if (taken && n == 0) {
		PyErr_SetString(PyExc_ValueError, "at least one input is needed");
		taken = false;
	}
	for (Py_ssize_t i = 0; taken && i < n; i++) {
		PyObject *bytes = NULL;
		taken = PyUnicode_FSConverter(PyList_GetItem(list, i), &bytes) != 0;
		if (taken) {
			paths[i] = PyBytes_AsString(bytes);
			PyList_SetItem(list, i, bytes);
		}
	}
	struct wattle_error error = {0};
	int r = 0;
	if (taken) {
		const char *path = PyBytes_AsString(out);
		Py_BEGIN_ALLOW_THREADS
		r = merge_files(path, paths, (size_t)n, &error);
		Py_END_ALLOW_THREADS
	}
	free((void *)paths);
	Py_XDECREF(list);
	Py_DECREF(out);
	if (r < 0)
		return raise_code(r, error.text);
	return taken ? Py_NewRef(Py_None) : NULL;
}

static PyObject *export(PyObject *module, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"run", "format", "out", "overwrite", "weight", NULL};
	PyObject *run = NULL, *out = NULL;
	struct export_choice choice = {0};
	int overwrite = 0;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&sO&|$pz:export", names, PyUnicode_FSConverter, &run,
		    &choice.format, PyUnicode_FSConverter, &out, &overwrite, &choice.weight)) {
		Py_XDECREF(run);
		Py_XDECREF(out);
		return NULL;
	}
	const char *path = PyBytes_AsString(run);
	choice.path = PyBytes_AsString(out);
	choice.overwrite = overwrite != 0;
	struct wattle_error error = {0};
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = export_file(path, &choice, &error);
	Py_END_ALLOW_THREADS
	Py_DECREF(run);
	Py_DECREF(out);
	if (r < 0)
		return raise_code(r, error.text);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"tracking_blocks_json", tracking_blocks, METH_VARARGS,
		"tracking_blocks_json(tracking_file, sub_tracking_file, /)\n--\n\nCode blocks of gpu_tracker's files; None: "
		"no tracking file, compute times only."},
	{"compare_json", compare, METH_VARARGS,
		"compare_json(named, statistic='mean', /)\n--\n\nAs `wattle compare --format json`."},
	{"merge", merge, METH_VARARGS, "merge(out, inputs, /)\n--\n\nAs `wattle merge`."},
	{"export", (PyCFunction)(void (*)(void)) export, METH_VARARGS | METH_KEYWORDS,
		"export(run, format, out, *, overwrite=False, weight=None)\n--\n\nAs `wattle export`."},
	{NULL},
};

int add_files(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
