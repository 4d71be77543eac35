#include "divide.h"

#include "analysis/block/divide.h"
#include "energy/slice.h"

#include <errno.h>
#include <unistd.h>

enum { WITHOUT_MAX = 64 };

struct divide_request { // parsed arguments: energy selection and columns
	Py_ssize_t n_columns;
	const char *domain;
	PyObject *without;  // a sequence, or NULL; after read_request an owned tuple
	PyObject *groups;   // group of each column, a sequence, or NULL
	uint32_t *group_of; // owned
	const char *names[WITHOUT_MAX];
	struct divide_of of;
};

static int read_groups(struct divide_request *request)
{
	if (request->groups == NULL || request->groups == Py_None)
		return 0;
	Py_ssize_t n = PySequence_Size(request->groups);
	if (n != request->n_columns) {
		if (n >= 0)
			PyErr_Format(PyExc_ValueError, "groups has %zd items for %zd columns", n, request->n_columns);
		return -1;
	}
	request->group_of = calloc_array((size_t)n, sizeof(*request->group_of));
	if (request->group_of == NULL)
		return (void)PyErr_NoMemory(), -1;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *item = PySequence_GetItem(request->groups, i);
		Py_ssize_t group = item != NULL ? PyLong_AsSsize_t(item) : -1;
		Py_XDECREF(item);
		if (group < 0 || group >= n) {
			if (!PyErr_Occurred())
				PyErr_Format(PyExc_ValueError, "group %zd of column %zd is not in 0 to %zd", group, i,
					n - 1);
			return -1;
		}
		request->group_of[i] = (uint32_t)group;
		if ((size_t)group >= request->of.n_groups)
			request->of.n_groups = (size_t)group + 1;
	}
	request->of.group_of = request->group_of;
	return 0;
}

static int read_request(struct divide_request *request)
{
	// Converts to a tuple: names are borrowed from it, and another thread may change a list.
	request->without = request->without != NULL ? PySequence_Tuple(request->without) : PyTuple_New(0);
	if (request->without == NULL)
		return -1;
	request->of = (struct divide_of){.domain = request->domain, .without = request->names};
	if (request->n_columns < 1 || request->n_columns > UINT32_MAX) {
		PyErr_Format(PyExc_ValueError, "n_columns must be at least 1, not %zd", request->n_columns);
		return -1;
	}
	Py_ssize_t n = PyTuple_Size(request->without);
	if (n > WITHOUT_MAX) {
		PyErr_Format(PyExc_ValueError, "at most %d domains can be left out, not %zd", WITHOUT_MAX, n);
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		request->names[i] = text_of(PyTuple_GetItem(request->without, i), "a domain to leave out");
		if (request->names[i] == NULL)
			return -1;
	}
	request->of.n_without = (size_t)n;
	return read_groups(request);
}

static void finish_request(struct divide_request *request)
{
	free(request->group_of);
	Py_XDECREF(request->without);
}

static PyObject *result(const struct divided *divided, size_t n)
{
	PyObject *list = PyList_New((Py_ssize_t)n);
	for (size_t i = 0; list != NULL && i < n; i++) {
		PyObject *one = Py_BuildValue("(ddd)", divided[i].time_s, divided[i].j, divided[i].error_j);
		if (one == NULL || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
			Py_CLEAR(list);
	}
	return list;
}

// Releases the GIL, because this may take a second.
static PyObject *distribute(const struct run *run, struct divide_interval *pieces, size_t n,
	const struct divide_request *request)
{
	size_t n_results = (size_t)request->n_columns + request->of.n_groups;
	struct divided *divided = calloc_array(n_results, sizeof(*divided));
	int r = -ENOMEM;
	if (divided != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		r = divide_intervals(run, pieces, n, (size_t)request->n_columns, &request->of, divided);
		Py_END_ALLOW_THREADS;
	}
	PyObject *list = NULL;
	if (r == 0)
		list = result(divided, n_results);
	else if (r == -ENOENT)
		PyErr_Format(PyExc_ValueError, "the run has no domain '%s'", request->domain);
	else
		raise_code(r, NULL);
	free(divided);
	return list;
}

/* ---- timeline supplied by the caller ---- */

enum { BEGIN, END, COLUMN, ARRAYS };
static const char *const array_names[ARRAYS] = {"begin_ns", "end_ns", "column"};
static const size_t item_sizes[ARRAYS] = {sizeof(int64_t), sizeof(int64_t), sizeof(int32_t)};

static int get_array(PyObject *object, size_t which, Py_buffer *view)
{
	if (PyObject_GetBuffer(object, view, PyBUF_CONTIG_RO | PyBUF_FORMAT) < 0)
		return -1;
	const char *format = view->format != NULL ? view->format : "B";
	format += *format == '@' || *format == '=' || *format == '<';
	bool is_integer = strlen(format) == 1 && strchr("ilq", *format) != NULL;
	if (is_integer && (size_t)view->itemsize == item_sizes[which])
		return 0;
	PyErr_Format(PyExc_ValueError, "%s must be integers of %zu bytes, not of format '%s'", array_names[which],
		item_sizes[which], view->format != NULL ? view->format : "B");
	PyBuffer_Release(view);
	return -1;
}

static struct divide_interval *read_intervals(const Py_buffer *views, size_t n, Py_ssize_t n_columns)
{
	const int64_t *begin_ns = views[BEGIN].buf, *end_ns = views[END].buf;
	const int32_t *column = views[COLUMN].buf;
	struct divide_interval *pieces = calloc_array(n, sizeof(*pieces));
	if (pieces == NULL)
		return (void)PyErr_NoMemory(), NULL;
	for (size_t i = 0; i < n; i++) {
		if (column[i] < 0 || column[i] >= n_columns || end_ns[i] < begin_ns[i]) {
			PyErr_Format(PyExc_ValueError,
				"interval %zu: column %d of %zd, from %lld to %lld ns, is not valid", i, column[i],
				n_columns, (long long)begin_ns[i], (long long)end_ns[i]);
			free(pieces);
			return NULL;
		}
		pieces[i] = (struct divide_interval){begin_ns[i], end_ns[i], (uint32_t)column[i]};
	}
	return pieces;
}

static PyObject *divide(const struct run *run, const Py_buffer *views, const struct divide_request *request)
{
	size_t n = (size_t)views[BEGIN].len / item_sizes[BEGIN];
	for (size_t i = 0; i < ARRAYS; i++)
		if ((size_t)views[i].len / item_sizes[i] != n)
			return PyErr_Format(PyExc_ValueError, "begin_ns has %zu items and %s has %zu", n,
				array_names[i], (size_t)views[i].len / item_sizes[i]);
	struct divide_interval *pieces = read_intervals(views, n, request->n_columns);
	PyObject *list = pieces != NULL ? distribute(run, pieces, n, request) : NULL;
	free(pieces);
	return list;
}

PyObject *run_divide(const struct run *run, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"begin_ns", "end_ns", "column", "n_columns", "domain", "without", "groups", NULL};
	struct divide_request request = {0};
	PyObject *objects[ARRAYS];
	Py_buffer views[ARRAYS];
	size_t n = 0;
	PyObject *list = NULL;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOn|zOO:divide", names, &objects[BEGIN], &objects[END],
		    &objects[COLUMN], &request.n_columns, &request.domain, &request.without, &request.groups))
		return NULL;
	bool read = read_request(&request) == 0;
	while (n < ARRAYS && read && get_array(objects[n], n, &views[n]) == 0)
		n++;
	if (n == ARRAYS)
		list = divide(run, views, &request);
	while (n > 0)
		PyBuffer_Release(&views[--n]);
	finish_request(&request);
	return list;
}

/* ---- spans of the run ---- */

struct columns { // columns by span name
	const char **names;
	uint32_t *of;
	size_t n;
};

static int read_column(PyObject *name, PyObject *number, Py_ssize_t n_columns, struct columns *columns)
{
	const char *text = text_of(name, "the name of a span");
	long long column = text != NULL ? PyLong_AsLongLong(number) : -1;
	if (PyErr_Occurred())
		return -1;
	if (column < 0 || column >= n_columns) {
		PyErr_Format(PyExc_ValueError, "column %lld of '%s' is none of %zd", column, text, n_columns);
		return -1;
	}
	columns->names[columns->n] = text;
	columns->of[columns->n++] = (uint32_t)column;
	return 0;
}

static int read_columns(PyObject *dict, Py_ssize_t n_columns, struct columns *columns)
{
	size_t room = (size_t)PyDict_Size(dict);
	PyObject *name, *number;
	Py_ssize_t at = 0;
	columns->names = calloc_array(room, sizeof(*columns->names));
	columns->of = calloc_array(room, sizeof(*columns->of));
	if (columns->names == NULL || columns->of == NULL)
		return (void)PyErr_NoMemory(), -1;
	while (columns->n < room && PyDict_Next(dict, &at, &name, &number))
		if (read_column(name, number, n_columns, columns) < 0)
			return -1;
	return 0;
}

static PyObject *divide_named(const struct run *run, long long pid, const struct columns *columns,
	const struct divide_request *request)
{
	struct divide_interval *pieces;
	size_t n;
	int r;
	Py_BEGIN_ALLOW_THREADS;
	r = divide_spans(run, pid, columns->names, columns->of, columns->n, &pieces, &n);
	Py_END_ALLOW_THREADS;
	if (r < 0)
		return raise_code(r, NULL);
	PyObject *list = distribute(run, pieces, n, request);
	free(pieces);
	return list;
}

PyObject *run_divide_spans(const struct run *run, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"columns", "n_columns", "domain", "without", "groups", "pid", NULL};
	struct divide_request request = {0};
	struct columns columns = {0};
	long long pid = getpid();
	PyObject *dict, *list = NULL;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!n|zOOL:divide_spans", names, &PyDict_Type, &dict,
		    &request.n_columns, &request.domain, &request.without, &request.groups, &pid))
		return NULL;
	dict = PyDict_Copy(dict);
	if (read_request(&request) == 0 && dict != NULL && read_columns(dict, request.n_columns, &columns) == 0)
		list = divide_named(run, pid, &columns, &request);
	Py_XDECREF(dict);
	finish_request(&request);
	free(columns.names);
	free(columns.of);
	return list;
}
