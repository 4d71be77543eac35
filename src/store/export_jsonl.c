#include "store/export.h"

#include "base/fields.h"
#include "base/util.h"
#include "store/schema.h"

#include <string.h>

/* One object per line. The tables of the run file (schema.c) define the keys and their meaning, so the fields here have no
 * description. */

// clang-format off

// A sample of the run, of a device or of a process.
struct sample_line {
	enum metric_scope scope;
	int64_t t_ns, pid, start_ns;
	const struct run_device *device;
	int64_t *const *values; // by metric: plain columns and packed columns
	const struct value_chunk **const *packed;
	size_t row;
};

#define TYPE(name_) FIELD_TEXT("type", field_argument, NULL, NULL, .argument = (name_), .known = true)
#define VALUE(struct_, member_, ...) FIELD(struct_, member_, NULL, NULL, ##__VA_ARGS__)

/* ---- run ---- */

static size_t metadata_count(const struct object_at *at)
{
	return ((const struct run *)at->data)->n_metadata;
}

static const char *metadata_name(const struct object_at *at, size_t i)
{
	return ((const struct run *)at->data)->facts[i].key;
}

static const char *metadata_value(const struct object_at *at, struct buf *scratch)
{
	return ((const struct run *)at->data)->facts[at->index].value;
}

static const struct field metadata_field = FIELD_TEXT("value", metadata_value, NULL, NULL);
static const struct field run_fields[] = {
	TYPE("run"),
	FIELD_MAP(NULL, &metadata_field, metadata_count, metadata_name, NULL),
};

/* ---- segment ---- */

static size_t figure_count(const struct object_at *at)
{
	size_t n;
	schema_figures(&n);
	return n;
}

static const char *figure_name(const struct object_at *at, size_t i)
{
	size_t n;
	return schema_figures(&n)[i].column;
}

static int64_t figure_value(const struct object_at *at)
{
	int64_t value;
	size_t n;
	memcpy(&value, (const unsigned char *)at->data + schema_figures(&n)[at->index].in_segment, sizeof(value));
	return value;
}

static const struct field figure_field = FIELD_INTEGER("value", figure_value, NULL, NULL);

#define S struct run_segment
static const struct field segment_fields[] = {
	TYPE("segment"),
	VALUE(S, id), VALUE(S, wall_start_ns), VALUE(S, boot_start_ns),
	FIELD_AS(S, "command", command_json, NULL, NULL), // the JSON array as text, as table segment stores it
	VALUE(S, complete), VALUE(S, cpu_method),
	FIELD_MAP(NULL, &figure_field, figure_count, figure_name, NULL),
};
#undef S

/* ---- samples ---- */

static const struct sample_line *sample_of(const struct object_at *at)
{
	return at->data;
}

static size_t metric_count(const struct object_at *at)
{
	size_t n;
	metric_table(sample_of(at)->scope, &n);
	return n;
}

static const char *metric_name(const struct object_at *at, size_t i)
{
	size_t n;
	return metric_table(sample_of(at)->scope, &n)[i].name;
}

static int64_t metric_value(const struct object_at *at)
{
	const struct sample_line *line = sample_of(at);
	return values_at((struct run_values){line->values[at->index], line->packed[at->index]}, line->row);
}

static const struct field metric_field = FIELD_INTEGER("value", metric_value, NULL, NULL);
#define METRICS FIELD_MAP(NULL, &metric_field, metric_count, metric_name, NULL)

#define L struct sample_line
static const struct field sample_fields[] = {TYPE("sample"), VALUE(L, t_ns), METRICS};
static const struct field device_sample_fields[] = {
	TYPE("device_sample"),
	VALUE(L, t_ns),
	FIELD_BY(L, device, "device", struct run_device, id, NULL, NULL),
	FIELD_BY(L, device, "name", struct run_device, name, NULL, NULL, .known = true),
	METRICS,
};
static const struct field process_sample_fields[] = {
	TYPE("process_sample"), VALUE(L, t_ns), VALUE(L, pid), VALUE(L, start_ns), METRICS,
};
#undef L

/* ---- rows as in run_fields.c ---- */

#define ROW(name_, type_) {TYPE(name_), FIELD_INLINE(&(type_))}
static const struct field device_fields[] = ROW("device", run_device_type);
static const struct field process_fields[] = ROW("process", run_process_type);
static const struct field event_fields[] = ROW("event", run_event_type);
static const struct field span_fields[] = ROW("span", run_span_type);
static const struct field user_metric_fields[] = ROW("user_metric", run_user_metric_type);

/* ---- lines ---- */

const struct object_type export_lines[EXPORT_LINES] = {
	[EXPORT_RUN] = OBJECT_TYPE("run_line", "Metadata of the run.", run_fields),
	[EXPORT_SEGMENT] = OBJECT_TYPE("segment_line", "A recording.", segment_fields),
	[EXPORT_DEVICE] = OBJECT_TYPE("device_line", "A measured device.", device_fields),
	[EXPORT_SAMPLE] = OBJECT_TYPE("sample_line", "A sample of the run.", sample_fields),
	[EXPORT_DEVICE_SAMPLE] = OBJECT_TYPE("device_sample_line", "A sample of a device.", device_sample_fields),
	[EXPORT_PROCESS_SAMPLE] = OBJECT_TYPE("process_sample_line", "A sample of a process.", process_sample_fields),
	[EXPORT_PROCESS] = OBJECT_TYPE("process_line", "A process of the program.", process_fields),
	[EXPORT_EVENT] = OBJECT_TYPE("event_line", "An event during the run.", event_fields),
	[EXPORT_SPAN] = OBJECT_TYPE("span_line", "A call of a code block.", span_fields),
	[EXPORT_USER_METRIC] = OBJECT_TYPE("user_metric_line", "A value that the program reported.", user_metric_fields),
};
// clang-format on

static void put(struct export_out *out, enum export_line line, const void *data)
{
	document_json(&out->text, &export_lines[line], data, false);
	buf_char(&out->text, '\n');
	export_out_more(out);
}

static void put_rows(struct export_out *out, enum export_line line, const void *rows, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++)
		put(out, line, (const char *)rows + i * size);
}

static void put_samples(const struct run *run, struct export_out *out)
{
	struct sample_line line = {.scope = METRIC_RUN, .values = run->values, .packed = run->packed};
	for (; line.row < run->n; line.row++) {
		line.t_ns = run->t_ns[line.row];
		put(out, EXPORT_SAMPLE, &line);
	}
}

static void put_device_samples(const struct run_device *device, struct export_out *out)
{
	struct sample_line line = {.scope = METRIC_DEVICE,
		.device = device,
		.values = device->values,
		.packed = device->packed};
	for (; line.row < device->n; line.row++) {
		line.t_ns = device->t_ns[line.row];
		put(out, EXPORT_DEVICE_SAMPLE, &line);
	}
}

static void put_process_samples(const struct run_process_samples *samples, struct export_out *out)
{
	struct sample_line line = {.scope = METRIC_PROCESS, .values = samples->values, .packed = samples->packed};
	for (; line.row < samples->n; line.row++) {
		line.t_ns = samples->t_ns[line.row];
		line.pid = samples->pid[line.row];
		line.start_ns = samples->start_ns[line.row];
		put(out, EXPORT_PROCESS_SAMPLE, &line);
	}
}

int export_jsonl(const struct run *run, struct export_out *out)
{
	put(out, EXPORT_RUN, run);
	put_rows(out, EXPORT_SEGMENT, run->segments, run->n_segments, sizeof(*run->segments));
	put_rows(out, EXPORT_DEVICE, run->devices, run->n_devices, sizeof(*run->devices));
	put_samples(run, out);
	for (size_t d = 0; d < run->n_devices; d++)
		put_device_samples(&run->devices[d], out);
	put_process_samples(&run->process_samples, out);
	put_rows(out, EXPORT_PROCESS, run->processes, run->n_processes, sizeof(*run->processes));
	put_rows(out, EXPORT_EVENT, run->events, run->n_events, sizeof(*run->events));
	put_rows(out, EXPORT_SPAN, run->spans, run->n_spans, sizeof(*run->spans));
	put_rows(out, EXPORT_USER_METRIC, run->user_metrics, run->n_user_metrics, sizeof(*run->user_metrics));
	return 0;
}
