/* The small tables of a run, as dicts; store/run_fields.c describes their fields. */
#include "run_object.h"

#include "store/export.h"

#define ROW(struct_, member_, ...) FIELD(struct_, member_, NULL, NULL, ##__VA_ARGS__)

PyObject *run_metadata_dict(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	PyObject *dict = PyDict_New();
	for (size_t i = 0; dict != NULL && i < run->n_metadata; i++) {
		const char *value = run->facts[i].value;
		PyObject *text = PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
		if (text == NULL || PyDict_SetItemString(dict, run->facts[i].key, text) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(text);
	}
	return dict;
}

PyObject *run_user_metrics(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	return row_dicts(run_user_metric_type.fields, run_user_metric_type.n_fields, run->user_metrics,
		run->n_user_metrics, sizeof(*run->user_metrics));
}

PyObject *run_events(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	return row_dicts(run_event_type.fields, run_event_type.n_fields, run->events, run->n_events,
		sizeof(*run->events));
}

PyObject *run_processes(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	return row_dicts(run_process_type.fields, run_process_type.n_fields, run->processes, run->n_processes,
		sizeof(*run->processes));
}

PyObject *run_segments(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		ROW(struct run_segment, id),
		ROW(struct run_segment, start_ns),
		ROW(struct run_segment, end_ns),
		ROW(struct run_segment, wall_start_ns),
		ROW(struct run_segment, boot_start_ns),
		ROW(struct run_segment, pid),
		ROW(struct run_segment, exit_code),
		ROW(struct run_segment, command_json),
		ROW(struct run_segment, complete),
		ROW(struct run_segment, samples),
		ROW(struct run_segment, lost_samples),
		ROW(struct run_segment, main_cpu_ns),
		ROW(struct run_segment, descendants_cpu_ns),
		ROW(struct run_segment, processes_seen),
		ROW(struct run_segment, peak_rss_bytes),
		ROW(struct run_segment, self_cpu_ns),
		ROW(struct run_segment, self_max_rss_bytes),
		ROW(struct run_segment, lost_spans),
		ROW(struct run_segment, unwound_spans),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->segments, run->n_segments, sizeof(*run->segments));
}

/* ---- devices with their samples ---- */

static bool set(PyObject *dict, const char *key, PyObject *value)
{
	int r = value != NULL ? PyDict_SetItemString(dict, key, value) : -1;
	Py_XDECREF(value);
	return r == 0;
}

static PyObject *device_samples(PyObject *self, const struct run_device *device)
{
	const struct state *state = state_of(Py_TYPE(self));
	size_t n;
	const struct metric *metrics = metric_table(METRIC_DEVICE, &n);
	PyObject *list = PyList_New(0);
	const struct column_view t = {"t_ns", "ns", "CLOCK_MONOTONIC", device->t_ns, device->n, sizeof(int64_t), "q"};
	bool whole = list != NULL && column_append(state, list, self, &t);
	for (size_t i = 0; whole && i < n; i++) {
		const struct column_view column = {metrics[i].name, metrics[i].unit, metrics[i].meaning,
			device->values[i], device->n, sizeof(int64_t), "q"};
		whole = column_append(state, list, self, &column);
	}
	if (!whole)
		Py_CLEAR(list);
	return list;
}

static PyObject *device_dict(PyObject *self, const struct run_device *device)
{
	PyObject *dict = row_dict(run_device_type.fields, run_device_type.n_fields, device);
	if (dict != NULL && !set(dict, "samples", device_samples(self, device)))
		Py_CLEAR(dict);
	return dict;
}

PyObject *run_devices(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	PyObject *list = PyList_New((Py_ssize_t)run->n_devices);
	for (size_t i = 0; list != NULL && i < run->n_devices; i++) {
		PyObject *dict = device_dict(self, &run->devices[i]);
		if (dict == NULL)
			Py_CLEAR(list);
		else
			PyList_SetItem(list, (Py_ssize_t)i, dict);
	}
	return list;
}
