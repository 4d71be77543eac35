/* The large tables of a run, as columns that refer to the run's memory. */
#include "run_object.h"

#include <errno.h>

static const struct column_view time_column = {.name = "t_ns",
	.unit = "ns",
	.meaning = "CLOCK_MONOTONIC",
	.format = "q"};

static PyObject *append_metrics(PyObject *self, PyObject *list, enum metric_scope scope, int64_t *const *values,
	size_t n)
{
	const struct state *state = state_of(Py_TYPE(self));
	size_t n_metrics;
	const struct metric *metrics = metric_table(scope, &n_metrics);
	for (size_t i = 0; i < n_metrics; i++) {
		const struct column_view column = {metrics[i].name, metrics[i].unit, metrics[i].meaning, values[i], n,
			sizeof(int64_t), "q"};
		if (!column_append(state, list, self, &column)) {
			Py_DECREF(list);
			return NULL;
		}
	}
	return list;
}

static PyObject *list_of(PyObject *self, const struct column_view *columns, size_t n_columns)
{
	const struct state *state = state_of(Py_TYPE(self));
	PyObject *list = PyList_New(0);
	for (size_t i = 0; list != NULL && i < n_columns; i++)
		if (!column_append(state, list, self, &columns[i]))
			Py_CLEAR(list);
	return list;
}

PyObject *run_samples(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	struct column_view t = time_column;
	t.data = run->t_ns;
	t.n = run->n;
	t.stride = sizeof(int64_t);
	PyObject *list = list_of(self, &t, 1);
	// A span file has no samples and no metric columns.
	return list != NULL ? append_metrics(self, list, METRIC_RUN, run->values, run->n) : NULL;
}

PyObject *run_process_samples(PyObject *self, PyObject *unused)
{
	const struct run_process_samples *samples = &as_run(self)->run.process_samples;
	const struct column_view keys[] = {
		{"t_ns", "ns", time_column.meaning, samples->t_ns, samples->n, sizeof(int64_t), "q"},
		{"pid", "", "process id", samples->pid, samples->n, sizeof(int64_t), "q"},
		{"start_ns", "ns", "start of the process; with the pid it identifies the process", samples->start_ns,
			samples->n, sizeof(int64_t), "q"},
	};
	PyObject *list = list_of(self, keys, ARRAY_SIZE(keys));
	return list != NULL ? append_metrics(self, list, METRIC_PROCESS, samples->values, samples->n) : NULL;
}

/* ---- spans: an array of structs, exported as columns with strides ---- */

static int64_t number_of(struct intern *names, const char *name)
{
	return intern_number(names, name, strlen(name));
}

// Equal names have equal pointers, and most spans have the name of the previous span or one of a few.
static int name_spans(struct run_object *self)
{
	const struct run *run = &self->run;
	int32_t *names = arena_alloc(run->arena, run->n_spans, sizeof(*names));
	int32_t *categories = arena_alloc(run->arena, run->n_spans, sizeof(*categories));
	if (names == NULL || categories == NULL)
		return -ENOMEM;
	intern_finish(&self->names); // left from an attempt that ran out of memory
	intern_init(&self->names, run->arena);
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		bool as_before = i > 0 && span->name == run->spans[i - 1].name;
		int64_t name = as_before ? names[i - 1] : number_of(&self->names, span->name);
		int64_t category = span->category != NULL ? number_of(&self->names, span->category) : -1;
		if (name < 0 || category < -1)
			return -ENOMEM;
		names[i] = (int32_t)name;
		categories[i] = (int32_t)category;
	}
	self->name_index = names;
	self->category_index = categories;
	return 0;
}

int run_object_name_spans(struct run_object *self)
{
	pthread_mutex_lock(&self->lock);
	int r = self->name_index == NULL ? name_spans(self) : 0;
	pthread_mutex_unlock(&self->lock);
	return r;
}

static bool name_spans_released(PyObject *self)
{
	int r;
	Py_BEGIN_ALLOW_THREADS
	r = run_object_name_spans(as_run(self));
	Py_END_ALLOW_THREADS
	if (r < 0)
		(void)raise_code(r, NULL);
	return r == 0;
}

static_assert(sizeof(enum span_kind) == sizeof(int32_t) && sizeof(enum span_close) == sizeof(int32_t),
	"they are shown as int32");

#define SPAN_COLUMN(member, unit, meaning, format)                                                                     \
	span_column(#member, unit, meaning, n > 0 ? &spans->member : NULL, n, format)

static struct column_view span_column(const char *name, const char *unit, const char *meaning, const void *data,
	size_t n, const char *format)
{
	return (struct column_view){name, unit, meaning, data, n, sizeof(struct run_span), format};
}

PyObject *run_spans(PyObject *self, PyObject *unused)
{
	if (!name_spans_released(self))
		return NULL;
	const struct run_span *spans = as_run(self)->run.spans;
	size_t n = as_run(self)->run.n_spans;
	const struct column_view columns[] = {
		SPAN_COLUMN(id, "", "number of the span, from 1", "q"),
		SPAN_COLUMN(parent, "", "number of the enclosing span", "q"),
		SPAN_COLUMN(begin_ns, "ns", "begin, CLOCK_MONOTONIC", "q"),
		SPAN_COLUMN(end_ns, "ns", "end; missing: not ended", "q"),
		SPAN_COLUMN(cpu_ns, "ns", "CPU time of the thread during the span; missing: not recorded", "q"),
		SPAN_COLUMN(pid, "", "process id", "i"),
		SPAN_COLUMN(tid, "", "thread id; 0: unknown", "i"),
		{"name_index", "", "index of the name in span_names()", as_run(self)->name_index, n, sizeof(int32_t),
			"i"},
		{"category_index", "", "index of the category in span_names(); -1: none", as_run(self)->category_index,
			n, sizeof(int32_t), "i"},
		SPAN_COLUMN(kind, "", "0: nested in its thread, 1: a range", "i"),
		SPAN_COLUMN(close, "",
			"0: ended, 1: still open, 2: unwound, closed by the end of its 3: thread, 4: program (exec), "
			"5: process",
			"i"),
	};
	return list_of(self, columns, ARRAY_SIZE(columns));
}

PyObject *run_span_names(PyObject *self, PyObject *unused)
{
	if (!name_spans_released(self))
		return NULL;
	const struct intern *names = &as_run(self)->names;
	PyObject *list = PyList_New((Py_ssize_t)names->n);
	for (size_t i = 0; list != NULL && i < names->n; i++) {
		PyObject *name = PyUnicode_DecodeUTF8(names->keys[i].bytes, names->keys[i].size, "replace");
		if (name == NULL)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, (Py_ssize_t)i, name);
	}
	return list;
}
