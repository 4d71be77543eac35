/* Fields of "wattle-now/1" (docs/serve.md) and of the chart data of the live page. */
#include "serve/view.h"

#include "base/fields.h"
#include "base/util.h"
#include "metric/metric.h"
#include "report/format_helpers.h"

// clang-format off

static const struct view_document *document_of(const struct object_at *at)
{
	return object_document(at);
}

static double if_target(const struct object_at *at, double target_w)
{
	return document_of(at)->view->has_target ? target_w : (double)NAN;
}

/* ---- domains ---- */

static double domain_target_w(const struct object_at *at)
{
	return if_target(at, ((const struct monitor_domain *)at->data)->target_w);
}

static const char *throttling(const struct object_at *at, struct buf *scratch)
{
	const struct monitor_domain *domain = at->data;
	char words[THROTTLE_PHRASE_SIZE];
	if (!value_ok(domain->throttle_bits))
		return NULL;
	throttle_phrase(domain->throttle_bits, words);
	buf_str(scratch, words);
	return scratch->data;
}

#define D struct monitor_domain
#define OF_SENSOR(key, member, meaning, ...) FIELD_BY(D, domain, key, struct domain, member, NULL, meaning, ##__VA_ARGS__)
static const struct field domain_fields[] = {
	OF_SENSOR("domain", name, "name of the domain: package-0, dram-0, gpu-0 …", .known = true),
	OF_SENSOR("kind", kind, "kind of the domain", .one_of = domain_kind_names),
	OF_SENSOR("device", device, "name of the hardware", .known = true),
	OF_SENSOR("uuid", uuid, "UUID of a GPU"),
	OF_SENSOR("inside", inside, "domain that contains this one"),
	FIELD(D, source, NULL, "sensor that is read", .known = true),
	OF_SENSOR("provenance", provenance, "provenance: measured, derived or estimated", .one_of = provenance_names),
	FIELD(D, in_total, NULL, "whether this domain is part of total_w and total_j"),
	FIELD(D, power_w, "W", "power since the previous sample; for counters, between two updates", .title = "Power"),
	FIELD_AS(D, "energy_j", energy_uj, "J", "energy since the server started counting", .scale = 1e-6, .title = "Energy"),
	FIELD(D, cap_w, "W", "power limit in force", .title = "Limit"),
	FIELD_NUMBER("target_w", domain_target_w, "W", "power attributed to the watched program; null: none is watched", .title = "Target"),
#define DEVICE_LIVE(id, member, unit, format, tag, title_, meaning) FIELD(D, member, unit, meaning, .title = (title_)),
#include "metric/metrics.def"
	FIELD(D, memory_total_bytes, "bytes", "memory"),
	FIELD_TEXT("throttling", throttling, NULL, "reasons why clocks are throttled; empty: none"),
	FIELD(D, wraps, NULL, "number of wraps of the counter"),
	FIELD(D, resets, NULL, "number of resets of the counter"),
	FIELD(D, gaps, NULL, "number of gaps in the readings of the counter"),
};
#undef OF_SENSOR
#undef D
static const struct object_type domain_type = OBJECT_TYPE("now_domain", "Current figures of a domain.", domain_fields);

static size_t domain_count(const struct object_at *at)
{
	return document_of(at)->now->n_domains;
}

static const void *domain_item(const struct object_at *at, size_t i)
{
	return &document_of(at)->now->domains[i];
}

/* ---- processes ---- */

static int64_t uid(const struct object_at *at)
{
	const struct monitor_process *process = at->data;
	return process->uid != (uid_t)-1 ? (int64_t)process->uid : VALUE_MISSING;
}

static const char *state(const struct object_at *at, struct buf *scratch)
{
	buf_add(scratch, &((const struct monitor_process *)at->data)->state, 1);
	return scratch->data;
}

#define P struct monitor_process
static const struct field process_fields[] = {
	FIELD(P, pid, NULL, "process id", .title = "PID"),
	FIELD(P, ppid, NULL, "process id of the parent"),
	FIELD_INTEGER("uid", uid, NULL, "user id"),
	FIELD(P, command, NULL, "command line, at most 255 bytes (… if truncated), or program name", .known = true),
	FIELD_TEXT("state", state, NULL, "state as in /proc/PID/stat", .known = true),
	FIELD(P, is_target, NULL, "whether it belongs to the watched program"),
	FIELD_AS(P, "is_wattle", is_own, NULL, "whether it is this server"),
	FIELD_AS(P, "has_ended", is_gone, NULL, "whether it ended since the previous sample"),
	FIELD(P, power_w, "W", "power attributed to it", .title = "Power"),
	FIELD(P, cpu_w, "W", "power of CPU packages attributed to it"),
	FIELD(P, dram_w, "W", "power of DRAM attributed to it"),
	FIELD(P, gpu_w, "W", "power of GPUs attributed to it"),
	FIELD(P, energy_j, "J", "energy attributed to it since it was first seen", .title = "Energy"),
	FIELD(P, cpu_cores, NULL, "mean number of cores that it keeps busy", .title = "CPU"),
	FIELD_AS(P, "cpu_s", cpu_ns, "s", "CPU time since it started", .scale = 1e-9),
	FIELD(P, rss_bytes, "bytes", "resident memory", .title = "Memory"),
	FIELD(P, threads, NULL, "threads", .title = "Threads"),
	FIELD(P, gpu_percent, "%", "GPU utilization; 100 is one busy GPU", .title = "GPU"),
	FIELD(P, gpu_memory_bytes, "bytes", "memory on GPUs", .title = "GPU memory"),
};
#undef P
static const struct object_type process_type = OBJECT_TYPE("now_process", "Current figures of a process.", process_fields);

static size_t process_count(const struct object_at *at)
{
	return document_of(at)->n_ranked;
}

static const void *process_item(const struct object_at *at, size_t i)
{
	return document_of(at)->ranked[i];
}

/* ---- the machine ---- */

#define N struct monitor_sample
static double target_w(const struct object_at *at)
{
	return if_target(at, ((const struct monitor_sample *)at->data)->sum.target_w);
}

static const struct field ledger_fields[] = {
	FIELD_NUMBER("target_w", target_w, "W", "power attributed to the watched program; null: none is watched"),
	FIELD_AS(N, "others_w", sum.others_w, "W", "power attributed to other programs"),
	FIELD_AS(N, "wattle_w", sum.own_w, "W", "power attributed to this server"),
	FIELD_AS(N, "idle_w", sum.idle_w, "W", "idle power; null: unknown, because every device is in use"),
	FIELD_AS(N, "unattributed_w", sum.unattributed_w, "W", "power that could not be attributed"),
};
static const struct object_type ledger_type =
	OBJECT_TYPE("now_ledger", "Power by owner: the known rows add up to the total.", ledger_fields);

static const struct field self_fields[] = {
	FIELD_AS(N, "cpu_percent", own_cpu_percent, "%", "CPU time of this server as a share of one core"),
	FIELD_AS(N, "rss_bytes", own_rss_bytes, "bytes", "resident memory of this server"),
};
static const struct object_type self_type = OBJECT_TYPE("now_self", "Resources that the server uses.", self_fields);

/* ---- the document ---- */

static const char *version(const struct object_at *at, struct buf *scratch)
{
	return WATTLE_VERSION;
}

static const char *time_text(const struct object_at *at, struct buf *scratch)
{
	rfc3339(scratch, document_of(at)->now->wall_ns);
	return scratch->data;
}

static double unix_s(const struct object_at *at)
{
	return (double)(document_of(at)->now->wall_ns / NS_PER_MS) / 1e3;
}

static uint64_t sample(const struct object_at *at)
{
	return document_of(at)->view->sample;
}

static double interval_s(const struct object_at *at)
{
	return (double)document_of(at)->view->interval_ns / 1e9;
}

static double up_s(const struct object_at *at)
{
	return (double)document_of(at)->view->up_ns / 1e9;
}

static const char *provenance(const struct object_at *at, struct buf *scratch)
{
	const struct monitor_sample *now = document_of(at)->now;
	return now->problem == NULL ? provenance_name(now->provenance) : NULL;
}

static bool has_history(const struct object_at *at)
{
	return document_of(at)->has_history;
}

#define D struct view_document
#define NOW(member, unit, meaning, ...) FIELD_BY(D, now, #member, N, member, unit, meaning, ##__VA_ARGS__)
static const struct field now_fields[] = {
	FIELD_SCHEMA("wattle-now/1"),
	FIELD_TEXT("version", version, NULL, "version of wattle", .known = true),
	FIELD_BY(D, view, "host", struct view, host, NULL, "name of the machine", .known = true),
	FIELD_UNSIGNED("sample", sample, NULL, "number of this sample, from 1", .old_key = "look"),
	FIELD_TEXT("time", time_text, NULL, "time of the sample, RFC 3339", .known = true),
	FIELD_NUMBER("unix_s", unix_s, "s", "Unix time of the sample", .known = true),
	NOW(dt_s, "s", "time since the previous sample; null: first sample"),
	FIELD_NUMBER("interval_s", interval_s, "s", "sampling interval", .known = true),
	FIELD_NUMBER("up_s", up_s, "s", "time since the first sample", .known = true),
	NOW(problem, NULL, "reason why no energy is known; null: energy is known"),
	NOW(total_w, "W", "power of all domains that do not overlap"),
	FIELD_BY(D, now, "total_j", N, total_energy_uj, "J", "energy of these domains since the server started counting", .scale = 1e-6),
	FIELD_TEXT("provenance", provenance, NULL, "weakest provenance of the domains in the total", .one_of = provenance_names),
	FIELD_POINTER(D, "ledger", now, &ledger_type, "power by owner"),
	NOW(cores, NULL, "cores of the machine"),
	NOW(busy_cores, NULL, "mean number of busy cores"),
	NOW(memory_total_bytes, "bytes", "memory of the machine"),
	NOW(memory_used_bytes, "bytes", "memory in use"),
	NOW(processes_seen, NULL, "number of processes on the machine, listed or not"),
	NOW(threads_seen, NULL, "threads of the machine"),
	FIELD_POINTER(D, "self", now, &self_type, "resources that the server uses"),
	FIELD_LIST("domains", &domain_type, domain_count, domain_item, "all domains, including those not in the total"),
	FIELD_LIST("processes", &process_type, process_count, process_item, "the 100 processes with the most power"),
	FIELD_SELF("history", &history_type, "the last 600 samples; with /now.json?history=1", .present = has_history,
		.old_key = "trail"),
};
#undef NOW
const struct object_type now_type = OBJECT_TYPE("now", "Live view of a machine.", now_fields);

static const struct field newest_fields[] = {
	FIELD_UNSIGNED("sample", sample, NULL, "number of this sample, from 1"),
	FIELD_NUMBER("interval_s", interval_s, "s", "sampling interval", .known = true),
	FIELD_BY(D, now, "cores", N, cores, NULL, "cores of the machine", .scale = 1),
	FIELD_BY(D, now, "memory_total_bytes", N, memory_total_bytes, "bytes", "memory of the machine", .scale = 1),
	FIELD_INLINE(&history_type),
};
static const struct object_type newest_type = OBJECT_TYPE("charts", "Data of the live page's charts.", newest_fields);
#undef D
#undef N

// clang-format on

void view_charts(const struct view *view, size_t first, struct buf *out)
{
	const struct view_document document = {.view = view,
		.now = view->now,
		.history = view->history,
		.first = first};
	document_json(out, &newest_type, &document, false);
}

void view_json(const struct view *view, bool history, struct buf *out)
{
	struct view_document document = {.view = view,
		.now = view->now,
		.history = view->history,
		.has_history = history};
	const struct monitor_process **ranked = view_ranked(view->now, &document.n_ranked);
	document.ranked = ranked;
	document_json(out, &now_type, &document, false);
	buf_char(out, '\n');
	free(ranked);
}
