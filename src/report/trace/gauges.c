// Gauges as read: memory, processes, utilisation, temperature, clocks; and CPU time as cores.
#include "report/trace/internal.h"

#include "base/util.h"

/* ---- a column of readings ---- */

struct readings {
	const int64_t *t_ns;
	struct run_values values;
	double scale;
	bool is_sparse; // read rarely; missing values between readings are normal
};

static int64_t end_of(const struct trace *trace, size_t segment, const int64_t *t_ns, struct slice rows)
{
	int64_t end_ns = trace->run->segments[segment].end_ns;
	return rows.end > rows.begin ? trace_later_ns(end_ns, t_ns[rows.end - 1]) : end_ns;
}

struct hole {                       // a gap in the readings
	int64_t known_ns, since_ns; // last known reading, first missing one; VALUE_MISSING: none
};

/* Fast sampling does not read /proc at each sample. A value missing for less than the hole limit (1 s or five intervals)
 * continues. */
static void end_hole(struct trace_counter *counter, const struct readings *readings, const struct hole *hole,
	int64_t t_ns)
{
	bool is_missing = value_ok(hole->known_ns) && value_ok(hole->since_ns);
	if (!readings->is_sparse && is_missing && t_ns - hole->known_ns > counter->trace->hole_ns)
		trace_counter_put(counter, hole->since_ns, (double)NAN);
}

static void put_row(struct trace_counter *counter, const struct readings *readings, size_t row, struct hole *hole)
{
	int64_t value = values_at(readings->values, row), t_ns = readings->t_ns[row];
	if (!value_ok(value)) {
		hole->since_ns = value_ok(hole->since_ns) ? hole->since_ns : t_ns;
		return;
	}
	end_hole(counter, readings, hole, t_ns);
	trace_counter_put(counter, t_ns, value_to_double(value, readings->scale));
	*hole = (struct hole){t_ns, VALUE_MISSING};
}

static void put_end(struct trace_counter *counter, const struct readings *readings, int64_t t_ns,
	const struct hole *hole)
{
	end_hole(counter, readings, hole, t_ns);
	trace_counter_put(counter, t_ns, (double)NAN);
}

/* ---- devices ---- */

void trace_device_gauge(struct trace_counter *counter, const struct run_device *device, enum device_metric metric,
	double scale)
{
	const struct trace *trace = counter->trace;
	const struct readings readings = {device->t_ns, device_column(device, metric), scale, false};
	for (size_t s = 0; s < trace->run->n_segments; s++) {
		struct slice rows = slice_of(trace->run, s, device->t_ns, device->n);
		struct hole hole = {VALUE_MISSING, VALUE_MISSING};
		for (size_t i = rows.begin; i < rows.end; i++)
			if (!slice_is_poll(device, i))
				put_row(counter, &readings, i, &hole);
		put_end(counter, &readings, end_of(trace, s, device->t_ns, rows), &hole);
	}
}

static const struct device_gauge {
	enum device_metric metric;
	const char *name, *unit, *axis_key;
} device_gauges[] = {
#define DEVICE_TRACK(id, name, unit, axis) {DEVICE_##id, name, unit, axis},
#include "metric/metrics.def"
};

static bool has_any(const struct run_device *device, enum device_metric metric)
{
	for (size_t i = 0; i < device->n; i++)
		if (value_ok(device_value(device, metric, i)))
			return true;
	return false;
}

static void show_device(struct trace *trace, const struct run_device *device, int rank)
{
	const char *label = trace_text(trace, device->device[0] != '\0' ? "%s (%s)" : "%s", device->name,
		device->device);
	uint64_t group = 0;
	for (size_t i = 0; i < ARRAY_SIZE(device_gauges); i++) {
		const struct device_gauge *gauge = &device_gauges[i];
		if (!has_any(device, gauge->metric))
			continue;
		if (group == 0)
			group = trace_group(trace, rank, label);
		struct trace_counter counter = {
			.trace = trace,
			.about = {.name = trace_text(trace, "%s %s", device->name, gauge->name),
				.parent = group,
				.rank = (int)i + 1},
			.unit = {gauge->unit, gauge->axis_key},
		};
		trace_device_gauge(&counter, device, gauge->metric, 1);
	}
}

void trace_devices(struct trace *trace)
{
	for (size_t i = 0; i < trace->run->n_devices; i++)
		show_device(trace, &trace->run->devices[i], RANK_DEVICES + (int)i);
}

/* ---- metrics of the run ---- */

static const struct run_gauge {
	enum run_metric metric;
	const char *name, *unit;
	bool is_sparse;
} run_gauges[] = {
	{RUN_SYSTEM_MEMORY, "memory in use on the machine", "bytes", false},
	{RUN_MAIN_RSS, "resident memory of the main process", "bytes", false},
	{RUN_DESCENDANTS_RSS, "resident memory of its descendants", "bytes", false},
	{RUN_MAIN_PSS, "proportional memory (PSS) of the main process", "bytes", true},
	{RUN_DESCENDANTS_PSS, "proportional memory (PSS) of its descendants", "bytes", true},
	{RUN_MAIN_USS, "own memory (USS) of the main process", "bytes", true},
	{RUN_DESCENDANTS_USS, "own memory (USS) of its descendants", "bytes", true},
	{RUN_SELF_RSS, "resident memory of wattle", "bytes", true},
	{RUN_PROCESSES, "processes of the target", "processes", false},
	{RUN_MAIN_THREADS, "threads of the main process", "threads", false},
	{RUN_DESCENDANTS_THREADS, "threads of its descendants", "threads", false},
};

static void show_gauge(struct trace *trace, const struct run_gauge *gauge, uint64_t group, int rank)
{
	const struct run *run = trace->run;
	const struct readings readings = {run->t_ns, run_column(run, gauge->metric), 1, gauge->is_sparse};
	struct trace_counter counter = {
		.trace = trace,
		.about = {.name = gauge->name, .parent = group, .rank = rank},
		.unit = {gauge->unit, NULL},
	};
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice rows = slice_samples(run, s);
		struct hole hole = {VALUE_MISSING, VALUE_MISSING};
		for (size_t i = rows.begin; i < rows.end; i++)
			put_row(&counter, &readings, i, &hole);
		put_end(&counter, &readings, end_of(trace, s, run->t_ns, rows), &hole);
	}
}

void trace_memory(struct trace *trace)
{
	if (trace->run->n == 0)
		return;
	uint64_t group = trace_group(trace, RANK_MEMORY, "memory and processes");
	for (size_t i = 0; i < ARRAY_SIZE(run_gauges); i++)
		show_gauge(trace, &run_gauges[i], group, (int)i + 1);
}

/* ---- CPU time ---- */

static double busy_ns(const struct window *window)
{
	return window->busy_ns;
}

static double target_ns(const struct window *window)
{
	return window->target_ns;
}

static double wattle_ns(const struct window *window)
{
	return window->wattle_ns;
}

static const struct cpu_use {
	const char *name, *description;
	double (*ns)(const struct window *window);
} cpu_uses[] = {
	{"CPU of the machine", "busy cores of the machine", busy_ns},
	{"CPU of the target", "cores kept busy by the measured program and its child processes", target_ns},
	{"CPU of wattle", "cores kept busy by wattle", wattle_ns},
};

// /proc counts in ticks of 10 ms: precise enough for windows of 100 ms, but noise for samples of 1 ms.
static void show_cpu(struct trace *trace, const struct cpu_use *use, uint64_t group, int rank)
{
	const struct windows *windows = &trace->timeline.windows;
	struct trace_counter counter = {
		.trace = trace,
		.about = {.name = use->name, .description = use->description, .parent = group, .rank = rank},
		.unit = {"cores", "cores"},
	};
	for (size_t w = 0; w < windows->n; w++) {
		struct window at = windows_at(windows, w);
		double length_ns = (double)(at.end_ns - at.begin_ns);
		trace_window_put(&counter, windows, w, length_ns > 0 ? use->ns(&at) / length_ns : (double)NAN);
	}
}

void trace_cpu(struct trace *trace)
{
	if (trace->run->n == 0)
		return;
	uint64_t group = trace_group(trace, RANK_CPU, "CPU");
	for (size_t i = 0; i < ARRAY_SIZE(cpu_uses); i++)
		show_cpu(trace, &cpu_uses[i], group, (int)i + 1);
}
