#include "store/export_formats.h"

#include "base/jsonw.h"
#include "base/util.h"
#include "store/schema.h"

#include <string.h>

/* One object a line. Integers are null where unknown, as everywhere in wattle. */

static void begin(struct jsonw *j, struct export_out *out, const char *type)
{
	jsonw_init(j, &out->text, false);
	jsonw_begin_object(j);
	jsonw_key_string(j, "type", type);
}

static void end(struct jsonw *j, struct export_out *out)
{
	jsonw_end_object(j);
	buf_char(&out->text, '\n');
	export_out_more(out);
}

// "" stands for "none" in the structs.
static void put_name(struct jsonw *j, const char *key, const char *text)
{
	jsonw_key_string(j, key, text[0] != '\0' ? text : NULL);
}

static void put_run(const struct run *run, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "run");
	for (size_t i = 0; i < run->n_facts; i++)
		jsonw_key_string(&j, run->facts[i].key, run->facts[i].value);
	end(&j, out);
}

static void put_segment(const struct run_segment *segment, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "segment");
	jsonw_key_i64(&j, "id", segment->id);
	jsonw_key_i64(&j, "wall_start_ns", segment->wall_start_ns);
	jsonw_key_i64(&j, "boot_start_ns", segment->boot_start_ns);
	jsonw_key_string(&j, "command", segment->command_json); // the array as text: it is what table segment has
	jsonw_key_bool(&j, "complete", segment->complete);
	jsonw_key_string(&j, "cpu_method", segment->cpu_method);
	size_t n;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++) {
		int64_t value;
		memcpy(&value, (const unsigned char *)segment + figures[i].in_segment, sizeof(value));
		jsonw_key_i64(&j, figures[i].column, value);
	}
	end(&j, out);
}

static void put_device(const struct run_device *device, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "device");
	jsonw_key_i64(&j, "id", device->id);
	jsonw_key_string(&j, "kind", device->kind < DOMAIN_KINDS ? domain_kind_name(device->kind) : NULL);
	put_name(&j, "name", device->name);
	put_name(&j, "uuid", device->uuid);
	put_name(&j, "device", device->device);
	put_name(&j, "inside", device->inside);
	jsonw_key_i64(&j, "index", device->index >= 0 ? device->index : VALUE_MISSING);
	put_name(&j, "source", device->source);
	jsonw_key_string(&j, "provenance", provenance_name(device->provenance));
	jsonw_key_bool(&j, "has_energy", device->has_energy);
	jsonw_key_double(&j, "resolution_j", device->resolution_j);
	jsonw_key_double(&j, "update_period_s", device->update_period_s);
	jsonw_key_double(&j, "update_jitter_s", device->update_jitter_s);
	jsonw_key_double(&j, "idle_w", device->idle_w);
	jsonw_key_double(&j, "idle_error_w", device->idle_error_w);
	jsonw_key_double(&j, "idle_temperature_c", device->idle_temperature_c);
	put_name(&j, "idle_date", device->idle_date);
	jsonw_key_double(&j, "gain", device->gain); // the rows that follow are multiplied by it already
	jsonw_key_double(&j, "gain_error", device->gain_error);
	put_name(&j, "gain_source", device->gain_source);
	jsonw_key_double(&j, "relative_error", device->relative_error);
	jsonw_key_i64(&j, "memory_total_bytes", device->memory_total_bytes);
	end(&j, out);
}

static void put_values(struct jsonw *j, enum metric_scope scope, int64_t *const *columns, size_t at)
{
	size_t n;
	const struct metric *metrics = metric_table(scope, &n);
	for (size_t m = 0; m < n; m++)
		jsonw_key_i64(j, metrics[m].name, columns[m][at]);
}

static void put_sample(const struct run *run, size_t at, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "sample");
	jsonw_key_i64(&j, "t_ns", run->t_ns[at]);
	put_values(&j, METRIC_RUN, run->values, at);
	end(&j, out);
}

static void put_device_sample(const struct run_device *device, size_t at, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "device_sample");
	jsonw_key_i64(&j, "t_ns", device->t_ns[at]);
	jsonw_key_i64(&j, "device", device->id);
	jsonw_key_string(&j, "name", device->name);
	put_values(&j, METRIC_DEVICE, device->values, at);
	end(&j, out);
}

static void put_process_sample(const struct run_process_samples *samples, size_t at, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "process_sample");
	jsonw_key_i64(&j, "t_ns", samples->t_ns[at]);
	jsonw_key_i64(&j, "pid", samples->pid[at]);
	jsonw_key_i64(&j, "start_ns", samples->start_ns[at]);
	put_values(&j, METRIC_PROCESS, samples->values, at);
	end(&j, out);
}

static void put_process(const struct run_process *process, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "process");
	jsonw_key_i64(&j, "pid", process->pid);
	jsonw_key_i64(&j, "ppid", process->ppid);
	jsonw_key_i64(&j, "start_ns", process->start_ns);
	jsonw_key_i64(&j, "end_ns", process->end_ns);
	jsonw_key_string(&j, "command", process->command);
	jsonw_key_i64(&j, "cpu_ns", process->cpu_ns);
	jsonw_key_i64(&j, "max_rss_bytes", process->max_rss_bytes);
	jsonw_key_bool(&j, "is_main", process->is_main);
	jsonw_key_bool(&j, "sampled", process->sampled);
	end(&j, out);
}

static void put_event(const struct event *event, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "event");
	jsonw_key_i64(&j, "t_ns", event->t_ns);
	jsonw_key_string(&j, "kind", event->kind_name);
	jsonw_key_string(&j, "text", event->text);
	end(&j, out);
}

static void put_span(const struct run_span *span, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "span");
	jsonw_key_i64(&j, "id", span->id);
	jsonw_key_i64(&j, "parent", span->parent);
	jsonw_key_i64(&j, "pid", span->pid);
	jsonw_key_i64(&j, "tid", span->tid != 0 ? span->tid : VALUE_MISSING);
	jsonw_key_string(&j, "name", span->name);
	jsonw_key_i64(&j, "begin_ns", span->begin_ns);
	jsonw_key_i64(&j, "end_ns", span->end_ns);
	jsonw_key_i64(&j, "cpu_ns", span->cpu_ns);
	jsonw_key_string(&j, "category", span->category);
	jsonw_key_string(&j, "kind", span_kind_name(span->kind));
	jsonw_key_string(&j, "close", span_close_name(span->close));
	end(&j, out);
}

static void put_user_metric(const struct run_user_metric *metric, struct export_out *out)
{
	struct jsonw j;
	begin(&j, out, "user_metric");
	jsonw_key_i64(&j, "t_ns", metric->t_ns);
	jsonw_key_string(&j, "name", metric->name);
	jsonw_key_double(&j, "value", metric->value);
	jsonw_key_i64(&j, "span", metric->span);
	jsonw_key_i64(&j, "pid", metric->pid != 0 ? metric->pid : VALUE_MISSING);
	jsonw_key_i64(&j, "tid", metric->tid != 0 ? metric->tid : VALUE_MISSING);
	end(&j, out);
}

int export_jsonl(const struct run *run, struct export_out *out)
{
	put_run(run, out);
	for (size_t i = 0; i < run->n_segments; i++)
		put_segment(&run->segments[i], out);
	for (size_t i = 0; i < run->n_devices; i++)
		put_device(&run->devices[i], out);
	for (size_t i = 0; i < run->n; i++)
		put_sample(run, i, out);
	for (size_t d = 0; d < run->n_devices; d++)
		for (size_t i = 0; i < run->devices[d].n; i++)
			put_device_sample(&run->devices[d], i, out);
	for (size_t i = 0; i < run->process_samples.n; i++)
		put_process_sample(&run->process_samples, i, out);
	for (size_t i = 0; i < run->n_processes; i++)
		put_process(&run->processes[i], out);
	for (size_t i = 0; i < run->n_events; i++)
		put_event(&run->events[i], out);
	for (size_t i = 0; i < run->n_spans; i++)
		put_span(&run->spans[i], out);
	for (size_t i = 0; i < run->n_user_metrics; i++)
		put_user_metric(&run->user_metrics[i], out);
	return 0;
}
