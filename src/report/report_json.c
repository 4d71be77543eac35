#include "report/report.h"

#include "analysis/energy/uncertainty.h"
#include "analysis/facts.h"
#include "base/jsonw.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/rank.h"
#include "report/warnings.h"

void labels_json(struct jsonw *j, const struct run *run)
{
	size_t prefix = strlen(FACT_META_PREFIX);
	const char *label = run_fact(run, FACT_LABEL);
	jsonw_key(j, "labels");
	jsonw_begin_object(j);
	if (label != NULL)
		jsonw_key_string(j, "label", label);
	for (size_t i = 0; i < run->n_facts; i++) {
		if (strncmp(run->facts[i].key, FACT_META_PREFIX, prefix) != 0)
			continue;
		const char *name = run->facts[i].key + prefix;
		if (label == NULL || strcmp(name, "label") != 0) // a key stands once: --label's comes before --meta's
			jsonw_key_string(j, name, run->facts[i].value);
	}
	jsonw_end_object(j);
}

static void start(struct jsonw *j, const struct run *run)
{
	struct buf text;
	buf_init(&text, 64);
	if (run->n_segments > 0 && value_ok(run->segments[0].wall_start_ns))
		rfc3339(&text, run->segments[0].wall_start_ns);
	jsonw_key_string(j, "start", text.data);
	buf_finish(&text);
}

void run_figures_json(struct jsonw *j, const struct findings *f)
{
	const struct run *run = f->run;
	jsonw_key_double(j, "duration_s", f->duration_s);
	jsonw_key_string(j, "host", run_fact(run, FACT_HOST));
	jsonw_key_double(j, "interval_s", run_fact_double(run, FACT_INTERVAL) / 1e9);
	jsonw_key_i64(j, "samples", f->samples);
	jsonw_key_i64(j, "lost_samples", f->lost_samples);
	jsonw_key_bool(j, "complete", f->complete);
	jsonw_key_i64(j, "segments", (int64_t)run->n_segments);
	labels_json(j, run);
}

static void run_part(struct jsonw *j, const struct findings *f)
{
	const struct run *run = f->run;
	const struct run_segment *segment = report_segment(run);
	jsonw_key(j, "run");
	jsonw_begin_object(j);
	jsonw_key_string(j, "id", run_fact(run, FACT_RUN_ID));
	jsonw_key(j, "command");
	command_json(j, segment);
	jsonw_key_i64(j, "pid", segment != NULL ? segment->pid : VALUE_MISSING);
	jsonw_key_i64(j, "exit_code", segment != NULL ? segment->exit_code : VALUE_MISSING);
	start(j, run);
	run_figures_json(j, f);
	jsonw_end_object(j);
}

void ledger_json(struct jsonw *j, const struct ledger *ledger)
{
	jsonw_begin_object(j);
	jsonw_key_double(j, "target_j", ledger->target_j);
	jsonw_key_double(j, "others_j", ledger->others_j);
	jsonw_key_double(j, "wattle_j", ledger->wattle_j);
	jsonw_key_double(j, "idle_j", ledger->idle_j);
	jsonw_key_double(j, "unattributed_j", ledger->unattributed_j);
	jsonw_end_object(j);
}

static void calibration_json(struct jsonw *j, const struct run_device *device)
{
	bool known = device->gain_error > 0;
	double error = calibration_error(device);
	jsonw_key_double(j, "calibration_factor", known ? device->gain : (double)NAN);
	jsonw_key_double(j, "calibration_error_percent", 100 * error);
	jsonw_key_string(j, "calibration_source", known ? device->gain_source : isnan(error) ? NULL : "uncalibrated");
}

void domain_json(struct jsonw *j, const struct domain_finding *d, const char *node)
{
	jsonw_begin_object(j);
	if (node != NULL)
		jsonw_key_string(j, "node", node);
	jsonw_key_string(j, "domain", d->device->name);
	jsonw_key_string(j, "kind", domain_kind_name(d->device->kind));
	jsonw_key_string(j, "device", text_or_null(d->device->device));
	jsonw_key_string(j, "inside", text_or_null(d->device->inside));
	jsonw_key_string(j, "source", d->device->source);
	jsonw_key_string(j, "provenance", provenance_name(d->provenance));
	jsonw_key_double(j, "energy_j", d->energy_j);
	jsonw_key_double(j, "error_j", d->error_j);
	jsonw_key_double(j, "calibration_error_j", d->calibration_error_j);
	calibration_json(j, d->device);
	jsonw_key_double(j, "mean_w", d->mean_w);
	jsonw_key_double(j, "max_w", d->max_w);
	jsonw_key_double(j, "target_j", d->ledger.target_j);
	jsonw_key_double(j, "target_error_j", d->target_error_j);
	jsonw_key_string(j, "attribution", d->attribution);
	jsonw_key_double(j, "integrated_j", d->integrated_j);
	jsonw_key_double(j, "integrated_error_j", d->integrated_error_j);
	jsonw_key_double(j, "update_period_s", d->update_period_s);
	jsonw_key_double(j, "update_jitter_s", d->update_jitter_s);
	jsonw_key_double(j, "idle_w", d->idle_w);
	jsonw_key_double(j, "max_temperature_c", d->max_temperature_c);
	jsonw_key_i64(j, "wraps", d->wraps);
	jsonw_key_i64(j, "gaps", d->gaps);
	jsonw_key_bool(j, "in_total", d->in_total);
	jsonw_key(j, "ledger");
	ledger_json(j, &d->ledger);
	jsonw_end_object(j);
}

void energy_sums_json(struct jsonw *j, const struct findings *f)
{
	jsonw_key_double(j, "total_j", f->total_j);
	jsonw_key_double(j, "error_j", f->error_j);
	jsonw_key_double(j, "calibration_error_j", f->calibration_error_j);
	jsonw_key_string(j, "provenance", isnan(f->total_j) ? NULL : provenance_name(f->provenance));
	jsonw_key(j, "ledger");
	ledger_json(j, &f->ledger);
	jsonw_key_double(j, "target_error_j", f->target_error_j);
	jsonw_key_double(j, "target_calibration_error_j", f->target_calibration_error_j);
	jsonw_key_double(j, "carbon_g", f->carbon_g);
	jsonw_key_double(j, "pue", f->pue);
	jsonw_key_double(j, "facility_j", f->facility_j);
	jsonw_key_double(j, "outside_blocks_j", f->outside_j);
	jsonw_key_double(j, "outside_blocks_error_j", f->outside_error_j);
}

static void energy_part(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	energy_sums_json(j, f);
	jsonw_key(j, "domains");
	jsonw_begin_array(j);
	for (size_t i = 0; i < f->n_domains; i++)
		domain_json(j, &f->domains[i], NULL);
	jsonw_end_array(j);
	jsonw_end_object(j);
}

void cpu_json(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "cpu");
	jsonw_begin_object(j);
	jsonw_key_double(j, "target_cpu_s", f->target_cpu_s);
	jsonw_key_string(j, "method", f->cpu_method);
	jsonw_key_double(j, "main_cpu_s", f->main_cpu_s);
	jsonw_key_double(j, "descendants_cpu_s", f->descendants_cpu_s);
	jsonw_key_double(j, "referee_cpu_s", f->referee_cpu_s);
	jsonw_key_i64(j, "processes_seen", f->processes_seen);
	jsonw_key_i64(j, "processes_sampled", f->processes_sampled);
	jsonw_key_i64(j, "voluntary_switches", f->voluntary_switches);
	jsonw_key_i64(j, "involuntary_switches", f->involuntary_switches);
	jsonw_end_object(j);
}

void memory_json(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "memory");
	jsonw_begin_object(j);
	jsonw_key_i64(j, "peak_rss_bytes", f->peak_rss_bytes);
	jsonw_key_i64(j, "main_peak_rss_bytes", f->main_peak_rss_bytes);
	jsonw_key_double(j, "peak_ram_bytes", f->usage.combined.total_bytes);
	jsonw_key_i64(j, "max_pss_bytes", f->max_pss_bytes);
	jsonw_key_i64(j, "max_uss_bytes", f->max_uss_bytes);
	jsonw_key_i64(j, "read_bytes", f->read_bytes);
	jsonw_key_i64(j, "written_bytes", f->written_bytes);
	jsonw_key_i64(j, "major_faults", f->major_faults);
	jsonw_key_i64(j, "minor_faults", f->minor_faults);
	jsonw_end_object(j);
}

void gpu_json(struct jsonw *j, const struct gpu_finding *gpu, const char *node)
{
	jsonw_begin_object(j);
	if (node != NULL)
		jsonw_key_string(j, "node", node);
	jsonw_key_i64(j, "index", gpu->device->index >= 0 ? gpu->device->index : VALUE_MISSING);
	jsonw_key_string(j, "uuid", text_or_null(gpu->device->uuid));
	jsonw_key_string(j, "name", text_or_null(gpu->device->device));
	jsonw_key_string(j, "domain", gpu->device->name);
	jsonw_key_double(j, "energy_j", gpu->energy_j);
	jsonw_key_double(j, "error_j", gpu->error_j);
	jsonw_key_double(j, "calibration_error_j", gpu->calibration_error_j);
	jsonw_key_double(j, "mean_w", gpu->mean_w);
	jsonw_key_double(j, "max_w", gpu->max_w);
	jsonw_key_i64(j, "memory_total_bytes", gpu->device->memory_total_bytes);
	jsonw_key_i64(j, "max_memory_bytes", gpu->max_memory_bytes);
	jsonw_key_i64(j, "target_max_memory_bytes", gpu->target_max_memory_bytes);
	jsonw_key_double(j, "mean_utilization_percent", gpu->mean_utilization_percent);
	jsonw_key_double(j, "target_mean_utilization_percent", gpu->target_mean_utilization_percent);
	jsonw_key_double(j, "max_temperature_c", gpu->max_temperature_c);
	jsonw_key_double(j, "throttled_s", gpu->throttled_s);
	jsonw_key_double(j, "cap_w", gpu->cap_w);
	jsonw_end_object(j);
}

static void metric_part(struct jsonw *j, const char *name, const struct stats *stats)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "name", name);
	jsonw_key_double(j, "last", stats->last);
	jsonw_key_double(j, "min", stats->min);
	jsonw_key_double(j, "max", stats->max);
	jsonw_key_double(j, "mean", stats->mean);
	jsonw_key_i64(j, "count", stats->count);
	jsonw_end_object(j);
}

// The program's own metrics first, then the recording's gauges by their column names.
void metrics_json(struct jsonw *j, const struct findings *f)
{
	size_t n;
	const struct metric *metrics = metric_table(METRIC_RUN, &n);
	jsonw_key(j, "metrics");
	jsonw_begin_array(j);
	for (size_t i = 0; i < f->n_user_metrics; i++)
		metric_part(j, f->user_metrics[i].name, &f->user_metrics[i].stats);
	for (size_t i = 0; i < n; i++)
		if (metrics[i].kind == METRIC_GAUGE)
			metric_part(j, metrics[i].name, &f->run_metrics[i]);
	jsonw_end_array(j);
}

void self_json(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "self");
	jsonw_begin_object(j);
	jsonw_key_double(j, "cpu_s", f->self_cpu_s);
	jsonw_key_double(j, "cpu_percent", f->self_cpu_percent);
	jsonw_key_i64(j, "max_rss_bytes", f->self_max_rss_bytes);
	jsonw_key_double(j, "energy_j", f->self_energy_j);
	jsonw_key_i64(j, "wakeups", f->self_wakeups);
	jsonw_end_object(j);
}

static double since_start_s(const struct run *run, int64_t t_ns)
{
	return run->n_segments > 0 ? (double)(t_ns - run->segments[0].start_ns) / 1e9 : (double)NAN;
}

void events_json(struct jsonw *j, const struct run *run)
{
	jsonw_key(j, "events");
	jsonw_begin_array(j);
	for (size_t i = 0; i < run->n_events; i++) {
		jsonw_begin_object(j);
		jsonw_key_double(j, "t_s", since_start_s(run, run->events[i].t_ns));
		jsonw_key_string(j, "kind", run->events[i].kind);
		jsonw_key_string(j, "text", run->events[i].text);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void warning(void *data, const char *text)
{
	jsonw_string(data, text);
}

void report_json(const struct findings *findings, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-report/1");
	run_part(&j, findings);
	rank_json(&j, findings->run);
	energy_part(&j, findings);
	cpu_json(&j, findings);
	memory_json(&j, findings);
	jsonw_key(&j, "gpus");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < findings->n_gpus; i++)
		gpu_json(&j, &findings->gpus[i], NULL);
	jsonw_end_array(&j);
	jsonw_key(&j, "resource_usage");
	usage_json(&j, findings->run, &findings->usage);
	jsonw_key(&j, "blocks");
	blocks_json(&j, findings);
	metrics_json(&j, findings);
	self_json(&j, findings);
	jsonw_key(&j, "warnings");
	jsonw_begin_array(&j);
	report_warnings(findings, warning, &j);
	jsonw_end_array(&j);
	events_json(&j, findings->run);
	jsonw_end_object(&j);
}
