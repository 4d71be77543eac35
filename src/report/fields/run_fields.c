/* Fields of run reports, also used by job reports where they are equal. */
#include "report/fields/document.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/phrases.h"

// clang-format off

/* ---- run ---- */

static const char *run_id(const struct object_at *at, struct buf *scratch)
{
	return is_of_job(at) ? NULL : document_metadata(at, scratch); // each rank's run has its own id
}

static const char *word(const struct object_at *at, struct buf *scratch)
{
	return document_of(at)->command[at->index];
}

static size_t word_count(const struct object_at *at)
{
	return document_of(at)->n_command;
}

static int64_t pid(const struct object_at *at)
{
	const struct run_segment *segment = report_segment(document_of(at)->run);
	return segment != NULL && !is_of_job(at) ? segment->pid : VALUE_MISSING;
}

static int64_t exit_code(const struct object_at *at)
{
	const struct run_segment *segment = report_segment(document_of(at)->run);
	return segment != NULL ? segment->exit_code : VALUE_MISSING;
}

static const char *start(const struct object_at *at, struct buf *scratch)
{
	if (value_ok(document_of(at)->start_wall_ns))
		rfc3339(scratch, document_of(at)->start_wall_ns);
	return scratch->size > 0 ? scratch->data : NULL;
}

static double duration_s(const struct object_at *at)
{
	return findings_of(at)->duration_s;
}

static double interval_s(const struct object_at *at)
{
	return run_metadata_double(document_of(at)->run, META_KEY_INTERVAL) / 1e9;
}

static int64_t samples(const struct object_at *at)
{
	return findings_of(at)->samples;
}

static int64_t lost_samples(const struct object_at *at)
{
	return findings_of(at)->lost_samples;
}

static bool complete(const struct object_at *at)
{
	return findings_of(at)->complete;
}

static int64_t segments(const struct object_at *at)
{
	return (int64_t)document_of(at)->run->n_segments;
}

static size_t label_count(const struct object_at *at)
{
	return document_of(at)->n_labels;
}

static const char *label_name(const struct object_at *at, size_t i)
{
	return document_of(at)->labels[i].name;
}

static const char *label_value(const struct object_at *at, struct buf *scratch)
{
	return document_of(at)->labels[at->index].value;
}

static const struct field word_field = FIELD_TEXT("word", word, NULL, "an argument of the command");
static const struct field label_field = FIELD_TEXT("value", label_value, NULL, "value of the label");

static const struct field run_fields[] = {
	FIELD_TEXT("id", run_id, NULL, "identity of the run; null for a job, whose runs have one each", .argument = META_KEY_RUN_ID),
	FIELD_VALUES("command", &word_field, word_count, "the measured command"),
	FIELD_INTEGER("pid", pid, NULL, "process id of the command; null for a job"),
	FIELD_INTEGER("exit_code", exit_code, NULL, "status that wattle returned: the command's own, 128+N if signal N ended it"),
	FIELD_TEXT("start", start, NULL, "when the command started, RFC 3339"),
	FIELD_NUMBER("duration_s", duration_s, "s", "time from start to end, over all segments"),
	FIELD_TEXT("host", document_metadata, NULL, "name of the machine", .argument = META_KEY_HOST),
	FIELD_NUMBER("interval_s", interval_s, "s", "sampling interval"),
	FIELD_INTEGER("samples", samples, NULL, "samples taken"),
	FIELD_INTEGER("lost_samples", lost_samples, NULL, "samples missed or not stored"),
	FIELD_BOOLEAN("complete", complete, NULL, "false: the recorder still runs, or died before the end"),
	FIELD_INTEGER("segments", segments, NULL, "recordings in this run file"),
	FIELD_MAP("labels", &label_field, label_count, label_name, "values of --label and --meta"),
};
const struct object_type run_type = OBJECT_TYPE("run", "What was measured, where and for duration of the event.", run_fields);

/* ---- the job of a rank ---- */

static const struct field rank_job_fields[] = {
	FIELD_TEXT("id", document_metadata, NULL, "id of the job", .argument = META_KEY_JOB_ID),
	FIELD_INTEGER("rank", document_metadata_number, NULL, "rank of this run", .argument = META_KEY_RANK),
	FIELD_INTEGER("local_rank", document_metadata_number, NULL, "its rank on its node", .argument = META_KEY_LOCAL_RANK),
	FIELD_TEXT("node", document_metadata, NULL, "name of its node", .argument = META_KEY_NODE),
	FIELD_INTEGER("world_size", document_metadata_number, NULL, "ranks of the job", .argument = META_KEY_WORLD_SIZE),
	FIELD_INTEGER("local_size", document_metadata_number, NULL, "ranks on its node", .argument = META_KEY_LOCAL_SIZE),
	FIELD_INTEGER("n_nodes", document_metadata_number, NULL, "nodes of the job", .argument = META_KEY_N_NODES),
	FIELD_TEXT("step", document_metadata, NULL, "job step of Slurm", .argument = META_KEY_JOB_STEP),
	FIELD_TEXT("name", document_metadata, NULL, "name of the job", .argument = META_KEY_JOB_NAME),
	FIELD_TEXT("user", document_metadata, NULL, "user of the job", .argument = META_KEY_JOB_USER),
	FIELD_TEXT("cluster", document_metadata, NULL, "name of the cluster", .argument = META_KEY_JOB_CLUSTER),
	FIELD_TEXT("launcher", document_metadata, NULL, "launcher of the rank", .argument = META_KEY_JOB_LAUNCHER),
	FIELD_INTEGER("restart", document_metadata_number, NULL, "number of earlier restarts of the job", .argument = META_KEY_RESTART),
	FIELD_TEXT("machine", document_metadata, NULL, "identity of the machine whose sensors were read", .argument = META_KEY_MACHINE),
};
static const struct object_type rank_job_type = OBJECT_TYPE("rank_job", "The job that a run is a rank of.", rank_job_fields);

static const void *rank_job(const struct object_at *at, size_t i)
{
	return rank_in_job(document_of(at)->run) ? at->data : NULL;
}

/* ---- CPU, memory, measurement overhead ---- */

#define F struct findings
static const struct field cpu_fields[] = {
	FIELD(F, target_cpu_s, "s", "CPU time of the measured program and its child processes"),
	FIELD_AS(F, "method", cpu_method, NULL, "method of measurement"),
	FIELD(F, main_cpu_s, "s", "CPU time of the root process"),
	FIELD(F, descendants_cpu_s, "s", "CPU time of its descendants"),
	FIELD(F, task_clock_cpu_s, "s", "CPU time by a second method (perf task-clock)", .old_key = "referee_cpu_s"),
	FIELD(F, processes_seen, NULL, "processes of the program"),
	FIELD(F, processes_sampled, NULL, "processes that were alive at one or more samples"),
	FIELD(F, voluntary_switches, NULL, "context switches because a thread waited"),
	FIELD(F, involuntary_switches, NULL, "context switches because a thread was preempted"),
};
const struct object_type cpu_type = OBJECT_TYPE("cpu", "CPU time of the measured program.", cpu_fields);

static const struct field memory_fields[] = {
	FIELD(F, peak_rss_bytes, "bytes", "largest sum of resident memory over all processes; shared pages count in each"),
	FIELD(F, main_peak_rss_bytes, "bytes", "largest resident memory of the root process (VmHWM)"),
	FIELD_AS(F, "peak_ram_bytes", usage.combined.total_bytes, "bytes", "largest memory in use, shared pages counted once"),
	FIELD(F, max_pss_bytes, "bytes", "largest proportional set size"),
	FIELD(F, max_uss_bytes, "bytes", "largest unique set size"),
	FIELD(F, read_bytes, "bytes", "read from storage"),
	FIELD(F, written_bytes, "bytes", "written to storage"),
	FIELD(F, major_faults, NULL, "page faults that read from storage"),
	FIELD(F, minor_faults, NULL, "page faults that did not read from storage"),
};
const struct object_type memory_type = OBJECT_TYPE("memory", "Memory and I/O of the measured program.", memory_fields);

static const struct field self_fields[] = {
	FIELD_AS(F, "cpu_s", self_cpu_s, "s", "CPU time of wattle"),
	FIELD_AS(F, "cpu_percent", self_cpu_percent, "%", "CPU time of wattle as a share of one core"),
	FIELD_AS(F, "max_rss_bytes", self_max_rss_bytes, "bytes", "largest resident memory of wattle"),
	FIELD_AS(F, "energy_j", self_energy_j, "J", "energy attributed to wattle"),
	FIELD_AS(F, "wakeups", self_wakeups, NULL, "wakeups of the recorder"),
};
const struct object_type self_type = OBJECT_TYPE("self", "Resources used by wattle.", self_fields);
#undef F

/* ---- metrics: custom metrics first, then the recording's gauges by column name ---- */

static size_t gauges(const struct metric **ret_metrics, size_t ret_at[RUN_COUNT])
{
	size_t n, n_gauges = 0;
	const struct metric *metrics = metric_table(METRIC_RUN, &n);
	for (size_t i = 0; i < n; i++)
		if (metrics[i].kind == METRIC_GAUGE)
			ret_at[n_gauges++] = i;
	*ret_metrics = metrics;
	return n_gauges;
}

static size_t metric_count(const struct object_at *at)
{
	const struct metric *metrics;
	size_t places[RUN_COUNT];
	return findings_of(at)->n_user_metrics + gauges(&metrics, places);
}

// The metric's data in the findings; both kinds use the same type.
static const void *metric_item(const struct object_at *at, size_t i)
{
	const struct findings *f = findings_of(at);
	const struct metric *metrics;
	size_t places[RUN_COUNT];
	if (i < f->n_user_metrics)
		return &f->user_metrics[i].stats;
	gauges(&metrics, places);
	return &f->run_metrics[places[i - f->n_user_metrics]];
}

static const char *metric_name(const struct object_at *at, struct buf *scratch)
{
	const struct findings *f = findings_of(at);
	const struct metric *metrics;
	size_t places[RUN_COUNT];
	if (at->index < f->n_user_metrics)
		return f->user_metrics[at->index].name;
	gauges(&metrics, places);
	return metrics[places[at->index - f->n_user_metrics]].name;
}

static const struct field metric_fields[] = {
	FIELD_TEXT("name", metric_name, NULL, "name set by the program, or column of table sample"),
	FIELD(struct stats, last, NULL, "last value", .title = "last"),
	FIELD(struct stats, min, NULL, "smallest value", .title = "min"),
	FIELD(struct stats, max, NULL, "largest value", .title = "max"),
	FIELD(struct stats, mean, NULL, "mean of the values", .title = "mean"),
	FIELD(struct stats, count, NULL, "number of values", .title = "count"),
};
static const struct object_type metric_type = OBJECT_TYPE("metric", "A metric over the run.", metric_fields);

/* ---- events ---- */

static size_t event_count(const struct object_at *at)
{
	return document_of(at)->run->n_events;
}

static const void *event_item(const struct object_at *at, size_t i)
{
	return &document_of(at)->run->events[i];
}

static double event_s(const struct object_at *at)
{
	const struct run *run = document_of(at)->run;
	const struct event *event = at->data;
	return run->n_segments > 0 ? (double)(event->t_ns - run->segments[0].start_ns) / 1e9 : (double)NAN;
}

static const struct event *event_of(const struct object_at *at)
{
	return at->data;
}

static double event_duration_s(const struct object_at *at)
{
	return value_to_double(event_of(at)->duration_ns, 1e-9);
}

#define KNOWN(name, condition)                                                                                         \
	static bool name(const struct object_at *at)                                                                   \
	{                                                                                                              \
		const struct event *event = event_of(at);                                                              \
		return condition;                                                                                      \
	}
KNOWN(has_device, event->device != NULL)
KNOWN(has_sensor, event->sensor != NULL)
KNOWN(has_pid, value_ok(event->pid))
KNOWN(has_rank, value_ok(event->rank))
KNOWN(has_count, value_ok(event->count))
KNOWN(has_duration, value_ok(event->duration_ns))
KNOWN(has_old_value, value_ok(event->old_value))
KNOWN(has_new_value, value_ok(event->new_value))
#undef KNOWN

#define E struct event
static const struct field event_fields[] = {
	FIELD_NUMBER("t_s", event_s, "s", "time since the start of the run", .title = "at"),
	FIELD_AS(E, "kind", kind_name, NULL, "kind of the event", .title = "what"),
	FIELD(E, text, NULL, "description of the event"),
	FIELD(E, device, NULL, "names of the affected domains, separated by blanks", .present = has_device),
	FIELD(E, sensor, NULL, "sensor that should read them", .present = has_sensor),
	FIELD(E, pid, NULL, "process id of another recorder of the job", .present = has_pid),
	FIELD(E, rank, NULL, "rank of that recorder", .present = has_rank),
	FIELD(E, count, NULL, "number of counted items", .present = has_count),
	FIELD_NUMBER("duration_s", event_duration_s, "s", "duration of the event", .present = has_duration),
	FIELD(E, old_value, NULL, "cap: the limit before, mW", .present = has_old_value),
	FIELD(E, new_value, NULL, "cap: the limit now, mW; throttle: bits; cgroup-peak-memory: bytes", .present = has_new_value),
};
#undef E
static const struct object_type event_type = OBJECT_TYPE("event", "An event during the run.", event_fields);

/* ---- documents ---- */

static const char *warning(const struct object_at *at, struct buf *scratch)
{
	return document_of(at)->warnings[at->index];
}

static size_t warning_count(const struct object_at *at)
{
	return document_of(at)->n_warnings;
}

static const struct field warning_field = FIELD_TEXT("text", warning, NULL, "one warning");

static size_t gpu_count(const struct object_at *at)
{
	return findings_of(at)->n_gpus;
}

static const void *gpu_item(const struct object_at *at, size_t i)
{
	return &findings_of(at)->gpus[is_of_job(at) ? document_of(at)->gpus[i] : i];
}

static size_t block_count(const struct object_at *at)
{
	return findings_of(at)->n_blocks;
}

static const void *block_item(const struct object_at *at, size_t i)
{
	return &findings_of(at)->blocks[i];
}

static size_t node_count(const struct object_at *at)
{
	return document_of(at)->job->n_nodes;
}

static const void *node_item(const struct object_at *at, size_t i)
{
	return &document_of(at)->job->nodes[i];
}

static size_t rank_count(const struct object_at *at)
{
	return document_of(at)->job->n_ranks;
}

static const void *rank_item(const struct object_at *at, size_t i)
{
	return &document_of(at)->job->ranks[i];
}

// Members common to run reports and job reports.
#define SCHEMA FIELD_SCHEMA("wattle-report/1")
#define RUN FIELD_SELF("run", &run_type, "the measured run")
#define ENERGY FIELD_SELF("energy", &energy_type, "energy of the machine by owner")
#define CPU FIELD_POINTER(struct document, "cpu", findings, &cpu_type, "CPU time")
#define MEMORY FIELD_POINTER(struct document, "memory", findings, &memory_type, "memory and I/O")
#define GPUS FIELD_LIST("gpus", &gpu_type, gpu_count, gpu_item, "the measured GPUs")
#define USAGE FIELD_SELF("resource_usage", &resource_usage_type, "gpu_tracker's figures, in the requested units")
#define BLOCKS FIELD_LIST("blocks", &block_type, block_count, block_item, "code blocks, by name")
#define METRICS FIELD_LIST("metrics", &metric_type, metric_count, metric_item, "metrics of the program and of the recording")
#define SELF FIELD_POINTER(struct document, "self", findings, &self_type, "resources used by wattle")
#define WARNINGS FIELD_VALUES("warnings", &warning_field, warning_count, "warnings about these figures")
#define EVENTS FIELD_LIST("events", &event_type, event_count, event_item, "events during the run")

static const struct field report_fields[] = {
	SCHEMA, RUN,
	FIELD_FOUND("job", &rank_job_type, rank_job, "the job that this run is a rank of; null: none"),
	ENERGY, CPU, MEMORY, GPUS, USAGE, BLOCKS, METRICS, SELF, WARNINGS, EVENTS,
};
const struct object_type report_type = OBJECT_TYPE("report", "Report of a run.", report_fields);

static const struct field job_report_fields[] = {
	SCHEMA, RUN,
	FIELD_POINTER(struct document, "job", job, &job_type, "the job"),
	ENERGY,
	FIELD_LIST("nodes", &node_type, node_count, node_item, "the nodes, in order of their first rank"),
	FIELD_LIST("ranks", &rank_type, rank_count, rank_item, "the ranks, in order"),
	FIELD_POINTER(struct document, "imbalance", job, &imbalance_type, "load imbalance of the ranks"),
	CPU, MEMORY, GPUS, USAGE, BLOCKS, METRICS, SELF, WARNINGS, EVENTS,
};
const struct object_type job_report_type = OBJECT_TYPE("job_report", "Report of a job.", job_report_fields);
