/* The small tables of a run, as dicts: a table each says what they hold. */
#include "run_object.h"

// clang-format off
#define FIELD(row, member, kind) {.name = #member, .offset = offsetof(struct row, member), .type = kind}
// clang-format on

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
		FIELD(run_user_metric, t_ns, FIELD_I64),
		FIELD(run_user_metric, name, FIELD_TEXT),
		FIELD(run_user_metric, value, FIELD_DOUBLE),
		FIELD(run_user_metric, span, FIELD_ID),
		FIELD(run_user_metric, pid, FIELD_I32),
		FIELD(run_user_metric, tid, FIELD_I32),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->user_metrics, run->n_user_metrics,
		sizeof(*run->user_metrics));
}

PyObject *run_events(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		FIELD(event, t_ns, FIELD_I64),
		{.name = "kind", .offset = offsetof(struct event, kind_name), .type = FIELD_TEXT},
		FIELD(event, text, FIELD_TEXT),
		FIELD(event, device, FIELD_TEXT),
		FIELD(event, sensor, FIELD_TEXT),
		FIELD(event, pid, FIELD_I64),
		FIELD(event, rank, FIELD_I64),
		FIELD(event, count, FIELD_I64),
		FIELD(event, duration_ns, FIELD_I64),
		FIELD(event, old_value, FIELD_I64),
		FIELD(event, new_value, FIELD_I64),
		FIELD(event, detail, FIELD_TEXT),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->events, run->n_events, sizeof(*run->events));
}

PyObject *run_processes(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		FIELD(run_process, pid, FIELD_I64),
		FIELD(run_process, ppid, FIELD_I64),
		FIELD(run_process, start_ns, FIELD_I64),
		FIELD(run_process, end_ns, FIELD_I64),
		FIELD(run_process, cpu_ns, FIELD_I64),
		FIELD(run_process, max_rss_bytes, FIELD_I64),
		FIELD(run_process, command, FIELD_TEXT),
		FIELD(run_process, is_main, FIELD_BOOL),
		FIELD(run_process, sampled, FIELD_BOOL),
	};
	const struct run *run = &as_run(self)->run;
	return row_dicts(fields, ARRAY_SIZE(fields), run->processes, run->n_processes, sizeof(*run->processes));
}

PyObject *run_segments(PyObject *self, PyObject *unused)
{
	static const struct field fields[] = {
		FIELD(run_segment, id, FIELD_I64),
		FIELD(run_segment, start_ns, FIELD_I64),
		FIELD(run_segment, end_ns, FIELD_I64),
		FIELD(run_segment, wall_start_ns, FIELD_I64),
		FIELD(run_segment, boot_start_ns, FIELD_I64),
		FIELD(run_segment, pid, FIELD_I64),
		FIELD(run_segment, exit_code, FIELD_I64),
		FIELD(run_segment, command_json, FIELD_TEXT),
		FIELD(run_segment, complete, FIELD_BOOL),
		FIELD(run_segment, samples, FIELD_I64),
		FIELD(run_segment, lost_samples, FIELD_I64),
		FIELD(run_segment, main_cpu_ns, FIELD_I64),
		FIELD(run_segment, descendants_cpu_ns, FIELD_I64),
		FIELD(run_segment, processes_seen, FIELD_I64),
		FIELD(run_segment, peak_rss_bytes, FIELD_I64),
		FIELD(run_segment, self_cpu_ns, FIELD_I64),
		FIELD(run_segment, self_max_rss_bytes, FIELD_I64),
		FIELD(run_segment, lost_spans, FIELD_I64),
		FIELD(run_segment, unwound_spans, FIELD_I64),
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
		FIELD(run_device, id, FIELD_I64),
		FIELD(run_device, name, FIELD_CHARS),
		FIELD(run_device, inside, FIELD_CHARS),
		FIELD(run_device, device, FIELD_CHARS),
		FIELD(run_device, uuid, FIELD_CHARS),
		FIELD(run_device, source, FIELD_CHARS),
		FIELD(run_device, has_energy, FIELD_BOOL),
		FIELD(run_device, resolution_j, FIELD_DOUBLE),
		FIELD(run_device, update_period_s, FIELD_DOUBLE),
		FIELD(run_device, update_jitter_s, FIELD_DOUBLE),
		FIELD(run_device, relative_error, FIELD_DOUBLE),
		FIELD(run_device, energy_range_j, FIELD_DOUBLE),
		FIELD(run_device, idle_w, FIELD_DOUBLE),
		FIELD(run_device, idle_error_w, FIELD_DOUBLE),
		FIELD(run_device, idle_temperature_c, FIELD_DOUBLE),
		FIELD(run_device, idle_date, FIELD_CHARS),
		FIELD(run_device, gain, FIELD_DOUBLE),
		FIELD(run_device, gain_error, FIELD_DOUBLE),
		FIELD(run_device, gain_source, FIELD_CHARS),
		FIELD(run_device, memory_total_bytes, FIELD_I64),
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
