#include "report/report.h"

#include "analysis/facts.h"
#include "base/json.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/warnings.h"

// Devices and names are char arrays in struct run_device, where "" is "none".
static const char *or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

static void labels(struct json *j, const struct run *run)
{
	size_t prefix = strlen(FACT_META_PREFIX);
	json_key(j, "labels");
	json_begin_object(j);
	if (run_fact(run, FACT_LABEL) != NULL)
		json_key_string(j, "label", run_fact(run, FACT_LABEL));
	for (size_t i = 0; i < run->n_facts; i++)
		if (strncmp(run->facts[i].key, FACT_META_PREFIX, prefix) == 0)
			json_key_string(j, run->facts[i].key + prefix, run->facts[i].value);
	json_end_object(j);
}

static void start(struct json *j, const struct run *run)
{
	struct buf text;
	buf_init(&text, 64);
	if (run->n_segments > 0 && value_ok(run->segments[0].wall_start_ns))
		rfc3339(&text, run->segments[0].wall_start_ns);
	json_key_string(j, "start", text.data);
	buf_finish(&text);
}

static void run_part(struct json *j, const struct findings *f)
{
	const struct run *run = f->run;
	const struct run_segment *segment = report_segment(run);
	json_key(j, "run");
	json_begin_object(j);
	json_key_string(j, "id", run_fact(run, FACT_RUN_ID));
	json_key(j, "command");
	command_json(j, segment);
	json_key_i64(j, "pid", segment != NULL ? segment->pid : VALUE_MISSING);
	json_key_i64(j, "exit_code", segment != NULL ? segment->exit_code : VALUE_MISSING);
	start(j, run);
	json_key_double(j, "duration_s", f->duration_s);
	json_key_string(j, "host", run_fact(run, FACT_HOST));
	json_key_double(j, "interval_s", run_fact_double(run, FACT_INTERVAL) / 1e9);
	json_key_i64(j, "samples", f->samples);
	json_key_i64(j, "lost_samples", f->lost_samples);
	json_key_bool(j, "complete", f->complete);
	json_key_i64(j, "segments", (int64_t)run->n_segments);
	labels(j, run);
	json_end_object(j);
}

static void ledger_rows(struct json *j, const struct ledger *ledger)
{
	json_begin_object(j);
	json_key_double(j, "target_j", ledger->target_j);
	json_key_double(j, "others_j", ledger->others_j);
	json_key_double(j, "wattle_j", ledger->wattle_j);
	json_key_double(j, "idle_j", ledger->idle_j);
	json_key_double(j, "unattributed_j", ledger->unattributed_j);
	json_end_object(j);
}

static void domain_part(struct json *j, const struct domain_finding *d)
{
	json_begin_object(j);
	json_key_string(j, "domain", d->device->name);
	json_key_string(j, "kind", domain_kind_name(d->device->kind));
	json_key_string(j, "device", or_null(d->device->device));
	json_key_string(j, "inside", or_null(d->device->inside));
	json_key_string(j, "source", d->device->source);
	json_key_string(j, "provenance", provenance_name(d->provenance));
	json_key_double(j, "energy_j", d->energy_j);
	json_key_double(j, "error_j", d->error_j);
	json_key_double(j, "mean_w", d->mean_w);
	json_key_double(j, "max_w", d->max_w);
	json_key_double(j, "target_j", d->ledger.target_j);
	json_key_string(j, "attribution", d->attribution);
	json_key_double(j, "update_period_s", d->update_period_s);
	json_key_i64(j, "wraps", d->wraps);
	json_key_i64(j, "gaps", d->gaps);
	json_key_bool(j, "in_total", d->in_total);
	json_key(j, "ledger");
	ledger_rows(j, &d->ledger);
	json_end_object(j);
}

static void energy_part(struct json *j, const struct findings *f)
{
	json_key(j, "energy");
	json_begin_object(j);
	json_key_double(j, "total_j", f->total_j);
	json_key_double(j, "error_j", f->error_j);
	json_key_string(j, "provenance", isnan(f->total_j) ? NULL : provenance_name(f->provenance));
	json_key(j, "ledger");
	ledger_rows(j, &f->ledger);
	json_key_double(j, "carbon_g", f->carbon_g);
	json_key_double(j, "pue", f->pue);
	json_key_double(j, "facility_j", f->facility_j);
	json_key(j, "domains");
	json_begin_array(j);
	for (size_t i = 0; i < f->n_domains; i++)
		domain_part(j, &f->domains[i]);
	json_end_array(j);
	json_end_object(j);
}

static void cpu_part(struct json *j, const struct findings *f)
{
	json_key(j, "cpu");
	json_begin_object(j);
	json_key_double(j, "target_cpu_s", f->target_cpu_s);
	json_key_string(j, "method", f->cpu_method);
	json_key_double(j, "main_cpu_s", f->main_cpu_s);
	json_key_double(j, "descendants_cpu_s", f->descendants_cpu_s);
	json_key_double(j, "referee_cpu_s", f->referee_cpu_s);
	json_key_i64(j, "processes_seen", f->processes_seen);
	json_key_i64(j, "processes_sampled", f->processes_sampled);
	json_key_i64(j, "voluntary_switches", f->voluntary_switches);
	json_key_i64(j, "involuntary_switches", f->involuntary_switches);
	json_end_object(j);
}

static void memory_part(struct json *j, const struct findings *f)
{
	json_key(j, "memory");
	json_begin_object(j);
	json_key_i64(j, "peak_rss_bytes", f->peak_rss_bytes);
	json_key_i64(j, "main_peak_rss_bytes", f->main_peak_rss_bytes);
	json_key_i64(j, "max_pss_bytes", f->max_pss_bytes);
	json_key_i64(j, "max_uss_bytes", f->max_uss_bytes);
	json_key_i64(j, "read_bytes", f->read_bytes);
	json_key_i64(j, "written_bytes", f->written_bytes);
	json_key_i64(j, "major_faults", f->major_faults);
	json_key_i64(j, "minor_faults", f->minor_faults);
	json_end_object(j);
}

static void gpu_part(struct json *j, const struct gpu_finding *gpu)
{
	json_begin_object(j);
	json_key_i64(j, "index", gpu->device->index >= 0 ? gpu->device->index : VALUE_MISSING);
	json_key_string(j, "uuid", or_null(gpu->device->uuid));
	json_key_string(j, "name", or_null(gpu->device->device));
	json_key_string(j, "domain", gpu->device->name);
	json_key_double(j, "energy_j", gpu->energy_j);
	json_key_double(j, "mean_w", gpu->mean_w);
	json_key_double(j, "max_w", gpu->max_w);
	json_key_i64(j, "memory_total_bytes", gpu->device->memory_total_bytes);
	json_key_i64(j, "max_memory_bytes", gpu->max_memory_bytes);
	json_key_i64(j, "target_max_memory_bytes", gpu->target_max_memory_bytes);
	json_key_double(j, "mean_utilization_percent", gpu->mean_utilization_percent);
	json_key_double(j, "target_mean_utilization_percent", gpu->target_mean_utilization_percent);
	json_key_double(j, "max_temperature_c", gpu->max_temperature_c);
	json_key_double(j, "throttled_s", gpu->throttled_s);
	json_key_double(j, "cap_w", gpu->cap_w);
	json_end_object(j);
}

static void metric_part(struct json *j, const char *name, const struct stats *stats)
{
	json_begin_object(j);
	json_key_string(j, "name", name);
	json_key_double(j, "last", stats->last);
	json_key_double(j, "min", stats->min);
	json_key_double(j, "max", stats->max);
	json_key_double(j, "mean", stats->mean);
	json_key_i64(j, "count", stats->count);
	json_end_object(j);
}

// The program's own metrics first, then the recording's gauges by their column names.
static void metrics_part(struct json *j, const struct findings *f)
{
	size_t n;
	const struct metric *metrics = metric_table(METRIC_RUN, &n);
	json_key(j, "metrics");
	json_begin_array(j);
	for (size_t i = 0; i < f->n_user_metrics; i++)
		metric_part(j, f->user_metrics[i].name, &f->user_metrics[i].stats);
	for (size_t i = 0; i < n; i++)
		if (metrics[i].kind == METRIC_GAUGE)
			metric_part(j, metrics[i].name, &f->run_metrics[i]);
	json_end_array(j);
}

static void self_part(struct json *j, const struct findings *f)
{
	json_key(j, "self");
	json_begin_object(j);
	json_key_double(j, "cpu_s", f->self_cpu_s);
	json_key_double(j, "cpu_percent", f->self_cpu_percent);
	json_key_i64(j, "max_rss_bytes", f->self_max_rss_bytes);
	json_key_double(j, "energy_j", f->self_energy_j);
	json_key_i64(j, "wakeups", f->self_wakeups);
	json_end_object(j);
}

static double since_start_s(const struct run *run, int64_t t_ns)
{
	return run->n_segments > 0 ? (double)(t_ns - run->segments[0].start_ns) / 1e9 : (double)NAN;
}

static void events_part(struct json *j, const struct run *run)
{
	json_key(j, "events");
	json_begin_array(j);
	for (size_t i = 0; i < run->n_events; i++) {
		json_begin_object(j);
		json_key_double(j, "t_s", since_start_s(run, run->events[i].t_ns));
		json_key_string(j, "kind", run->events[i].kind);
		json_key_string(j, "text", run->events[i].text);
		json_end_object(j);
	}
	json_end_array(j);
}

static void warning(void *data, const char *text)
{
	json_str(data, text);
}

void report_json(const struct findings *findings, struct buf *out)
{
	struct json j;
	json_init(&j, out, true);
	json_begin_object(&j);
	json_key_string(&j, "schema", "wattle-report/1");
	run_part(&j, findings);
	energy_part(&j, findings);
	cpu_part(&j, findings);
	memory_part(&j, findings);
	json_key(&j, "gpus");
	json_begin_array(&j);
	for (size_t i = 0; i < findings->n_gpus; i++)
		gpu_part(&j, &findings->gpus[i]);
	json_end_array(&j);
	json_key(&j, "resource_usage");
	usage_json(&j, findings->run, &findings->usage);
	json_key(&j, "blocks");
	blocks_json(&j, findings);
	metrics_part(&j, findings);
	self_part(&j, findings);
	json_key(&j, "warnings");
	json_begin_array(&j);
	report_warnings(findings, warning, &j);
	json_end_array(&j);
	events_part(&j, findings->run);
	json_end_object(&j);
}
