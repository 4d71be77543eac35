/* The small tables of a run, as dicts: a table each says what they hold. */
#include "run_object.h"

#define ROW(struct_, member_, ...) FIELD(struct_, member_, NULL, NULL, ##__VA_ARGS__)

// Ids, pids and tids are from 1.
static bool is_zero(const struct object_at *at)
{
	const char *place = (const char *)at->data + at->field->offset;
	return at->field->type == FIELD_IS_INT ? *(const int32_t *)place == 0 : *(const int64_t *)place == 0;
}

PyObject *run_facts(PyObject *self, PyObject *unused)
{
	const struct run *run = &as_run(self)->run;
	PyObject *dict = PyDict_New();
	for (size_t i = 0; dict != NULL && i < run->n_facts; i++) {
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
	static const struct field fields[] = {
		ROW(struct run_user_metric, t_ns),
		ROW(struct run_user_metric, name),
		ROW(struct run_user_metric, value),
		ROW(struct run_user_metric, span, .null_if = is_zero),
		ROW(struct run_user_metric, pid, .null_if = is_zero),
		ROW(struct run_user_metric, tid, .null_if = is_zero),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->user_metrics, run->n_user_metrics,
		sizeof(*run->user_metrics));
}

PyObject *run_events(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		ROW(struct event, t_ns),
		FIELD_AS(struct event, "kind", kind_name, NULL, NULL),
		ROW(struct event, text),
		ROW(struct event, device),
		ROW(struct event, sensor),
		ROW(struct event, pid),
		ROW(struct event, rank),
		ROW(struct event, count),
		ROW(struct event, duration_ns),
		ROW(struct event, old_value),
		ROW(struct event, new_value),
		ROW(struct event, detail),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->events, run->n_events, sizeof(*run->events));
}

PyObject *run_processes(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		ROW(struct run_process, pid),
		ROW(struct run_process, ppid),
		ROW(struct run_process, start_ns),
		ROW(struct run_process, end_ns),
		ROW(struct run_process, cpu_ns),
		ROW(struct run_process, max_rss_bytes),
		ROW(struct run_process, command),
		ROW(struct run_process, is_main),
		ROW(struct run_process, sampled),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->processes, run->n_processes, sizeof(*run->processes));
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

/* ---- devices, each with its samples ---- */

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
	static const struct field fields[] = {
		ROW(struct run_device, id),
		ROW(struct run_device, name),
		ROW(struct run_device, inside),
		ROW(struct run_device, device),
		ROW(struct run_device, uuid),
		ROW(struct run_device, source),
		ROW(struct run_device, has_energy),
		ROW(struct run_device, resolution_j),
		ROW(struct run_device, update_period_s),
		ROW(struct run_device, update_jitter_s),
		ROW(struct run_device, relative_error),
		ROW(struct run_device, energy_range_j),
		ROW(struct run_device, idle_w),
		ROW(struct run_device, idle_error_w),
		ROW(struct run_device, idle_temperature_c),
		ROW(struct run_device, idle_date),
		ROW(struct run_device, gain),
		ROW(struct run_device, gain_error),
		ROW(struct run_device, gain_source),
		ROW(struct run_device, memory_total_bytes),
	};
	PyObject *dict = row_dict(fields, ARRAY_SIZE(fields), device);
	if (dict == NULL)
		return NULL;
	bool is_known = device->kind < DOMAIN_KINDS; // a later wattle's may not be
	PyObject *kind = is_known ? PyUnicode_FromString(domain_kind_name(device->kind)) : Py_NewRef(Py_None);
	PyObject *index = device->index >= 0 ? PyLong_FromLong(device->index) : Py_NewRef(Py_None);
	bool whole = set(dict, "kind", kind);
	whole = set(dict, "index", index) && whole;
	whole = set(dict, "provenance", PyUnicode_FromString(provenance_name(device->provenance))) && whole;
	whole = set(dict, "samples", device_samples(self, device)) && whole;
	if (!whole)
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
