/* Run: a stored run in memory, and its reports. wattle.open (run.py) is the public interface. */
#include "run_object.h"

#include "analysis/chart/chart.h"
#include "base/buf.h"
#include "divide.h"
#include "report/documents.h"
#include "report/page/page.h"
#include "report/picture/charts_json.h"
#include "report/report.h"
#include "task/task.h"

#include <errno.h>

enum { DOCUMENT_CEILING = 1 << 30 };

static PyObject *new (PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"path", NULL};
	PyObject *bytes = NULL;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&:Run", names, PyUnicode_FSConverter, &bytes))
		return NULL;
	const char *path = PyBytes_AsString(bytes);
	struct wattle_error error = {0};
	struct run run;
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = load_run(path, &run, &error);
	if (r == 0 && run_unpack(&run) < 0) { // the buffer protocol exports columns, so they must be unpacked
		run_finish(&run);
		r = -ENOMEM;
	}
	Py_END_ALLOW_THREADS
	struct run_object *self = r == 0 ? PyObject_New(struct run_object, type) : NULL;
	if (self == NULL) {
		if (r == 0)
			run_finish(&run);
		else
			(void)raise_code(r, error.text);
		Py_DECREF(bytes);
		return NULL;
	}
	self->run = run;
	self->has_findings = false;
	self->name_index = self->category_index = NULL;
	self->names = (struct intern){0};
	pthread_mutex_init(&self->lock, NULL);
	self->path = PyUnicode_DecodeFSDefault(path);
	Py_DECREF(bytes);
	if (self->path == NULL)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
	struct run_object *self = as_run(object);
	PyTypeObject *type = Py_TYPE(object);
	if (self->has_findings)
		findings_finish(&self->findings);
	intern_finish(&self->names);
	run_finish(&self->run);
	pthread_mutex_destroy(&self->lock);
	Py_XDECREF(self->path);
	PyObject_Free(self);
	Py_DECREF(type);
}

int run_object_findings(struct run_object *self)
{
	pthread_mutex_lock(&self->lock);
	int r = self->has_findings ? 0 : findings_make(&self->run, &self->findings);
	self->has_findings = r == 0;
	pthread_mutex_unlock(&self->lock);
	return r;
}

/* ---- documents ---- */

static void write_text(const struct findings *findings, struct buf *out)
{
	report_text(findings, out, false);
}

static PyObject *document(PyObject *self, void (*write)(const struct findings *findings, struct buf *out))
{
	struct buf out;
	int r;
	buf_init(&out, DOCUMENT_CEILING);
	Py_BEGIN_ALLOW_THREADS
	r = run_object_findings(as_run(self));
	if (r == 0) {
		write(&as_run(self)->findings, &out);
		r = out.failed;
	}
	Py_END_ALLOW_THREADS
	PyObject *text = r == 0 ? PyUnicode_DecodeUTF8(out.data, (Py_ssize_t)out.size, "replace") : raise_code(r, NULL);
	buf_finish(&out);
	return text;
}

static PyObject *get_report_json(PyObject *self, PyObject *unused)
{
	return document(self, report_json);
}

static PyObject *get_report_text(PyObject *self, PyObject *unused)
{
	return document(self, write_text);
}

static PyObject *get_blocks_json(PyObject *self, PyObject *unused)
{
	return document(self, blocks_document);
}

static int write_charts(struct run_object *self, const struct chart_limits *limits, struct buf *out)
{
	struct charts charts;
	int r = run_object_findings(self);
	if (r == 0)
		r = charts_make(&self->findings, limits, &charts);
	if (r < 0)
		return r;
	charts_json(&charts, out);
	charts_finish(&charts);
	return out->failed;
}

static PyObject *get_charts_json(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"buckets", "items", NULL};
	Py_ssize_t buckets = 0, items = 0;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|nn:charts_json", names, &buckets, &items))
		return NULL;
	if (buckets < 0 || items < 0) {
		PyErr_SetString(PyExc_ValueError, "buckets and items are maximum numbers, 0 or more; 0: the default");
		return NULL;
	}
	const struct chart_limits limits = {.buckets = (size_t)buckets, .items = (size_t)items};
	struct buf out;
	int r;
	buf_init(&out, DOCUMENT_CEILING);
	Py_BEGIN_ALLOW_THREADS
	r = write_charts(as_run(self), &limits, &out);
	Py_END_ALLOW_THREADS
	PyObject *text = r == 0 ? PyUnicode_DecodeUTF8(out.data, (Py_ssize_t)out.size, "replace") : raise_code(r, NULL);
	buf_finish(&out);
	return text;
}

static PyObject *wall_ns(PyObject *self, PyObject *t_ns)
{
	long long t = PyLong_AsLongLong(t_ns);
	if (t == -1 && PyErr_Occurred())
		return NULL;
	int64_t wall = run_wall_ns(&as_run(self)->run, t);
	return value_ok(wall) ? PyLong_FromLongLong(wall) : Py_NewRef(Py_None);
}

static PyObject *divide(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	return run_divide(&as_run(self)->run, arguments, keywords);
}

static PyObject *divide_spans(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	return run_divide_spans(&as_run(self)->run, arguments, keywords);
}

static PyObject *get_path(PyObject *self, void *unused)
{
	return Py_NewRef(as_run(self)->path);
}

static PyMethodDef methods[] = {
	{"report_json", get_report_json, METH_NOARGS, "The report as JSON, schema wattle-report/1."},
	{"report_text", get_report_text, METH_NOARGS, "The report as text."},
	{"blocks_json", get_blocks_json, METH_NOARGS, "As `wattle blocks --format json`."},
	{"charts_json", (PyCFunction)(void (*)(void))get_charts_json, METH_VARARGS | METH_KEYWORDS,
		"Data of the charts as JSON, schema wattle-charts/1."},
	{"facts", run_metadata_dict, METH_NOARGS, "Table run."},
	{"samples", run_samples, METH_NOARGS, "t_ns, and one column per metric."},
	{"process_samples", run_process_samples, METH_NOARGS, "t_ns, pid, start_ns, and one column per metric."},
	{"devices", run_devices, METH_NOARGS, "One dict per device, with its samples."},
	{"spans", run_spans, METH_NOARGS, "Table span as columns."},
	{"span_names", run_span_names, METH_NOARGS, "Names of spans, by name_index."},
	{"user_metrics", run_user_metrics, METH_NOARGS, "Table user_metric."},
	{"events", run_events, METH_NOARGS, "Table event."},
	{"processes", run_processes, METH_NOARGS, "Table process."},
	{"segments", run_segments, METH_NOARGS, "Table segment."},
	{"divide", (PyCFunction)(void (*)(void))divide, METH_VARARGS | METH_KEYWORDS,
		"Divides the target's energy over a timeline given by the caller."},
	{"divide_spans", (PyCFunction)(void (*)(void))divide_spans, METH_VARARGS | METH_KEYWORDS,
		"Divides the target's energy over spans with the given names."},
	{"wall_ns", wall_ns, METH_O, "Unix time of an instant of the run, ns; None without an anchor."},
	{NULL},
};

static PyGetSetDef members[] = {{"path", get_path, NULL, "Path of the file.", NULL}, {NULL}};

static PyType_Slot type_slots[] = {
	{Py_tp_doc, "Run(path)\n--\n\nA run file or span file, loaded whole; see wattle.open."},
	{Py_tp_new, (void *)new},
	{Py_tp_dealloc, (void *)dealloc},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

static PyType_Spec type_spec = {"wattle._wattle.Run", sizeof(struct run_object), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, type_slots};

int add_run(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
	if (type == NULL)
		return -1;
	state_of_module(module)->types[TYPE_RUN] = type;
	return PyModule_AddType(module, (PyTypeObject *)type);
}
