#include "store/export.h"

#include "base/util.h"
#include "store/run.h"

// clang-format off
#define VALUE(struct_, member_, ...) FIELD(struct_, member_, NULL, NULL, ##__VA_ARGS__)

static bool has_no_index(const struct object_at *at)
{
	return ((const struct run_device *)at->data)->index < 0;
}

#define D struct run_device
static const struct field device_fields[] = {
	VALUE(D, id), VALUE(D, kind, .one_of = domain_kind_names), VALUE(D, name), VALUE(D, uuid), VALUE(D, device),
	VALUE(D, inside), VALUE(D, index, .null_if = has_no_index), VALUE(D, source),
	VALUE(D, provenance, .one_of = provenance_names), VALUE(D, has_energy), VALUE(D, resolution_j),
	VALUE(D, energy_range_j), VALUE(D, update_period_s), VALUE(D, update_jitter_s), VALUE(D, idle_w), VALUE(D, idle_error_w),
	VALUE(D, idle_temperature_c), VALUE(D, idle_date),
	VALUE(D, gain), // the fields below are already multiplied by gain
	VALUE(D, gain_error), VALUE(D, gain_source), VALUE(D, relative_error), VALUE(D, memory_total_bytes),
};
#undef D

#define P struct run_process
static const struct field process_fields[] = {
	VALUE(P, pid), VALUE(P, ppid), VALUE(P, start_ns), VALUE(P, end_ns), VALUE(P, command), VALUE(P, cpu_ns),
	VALUE(P, max_rss_bytes), VALUE(P, is_main), VALUE(P, sampled),
};
#undef P

#define E struct event
static const struct field event_fields[] = {
	VALUE(E, t_ns), FIELD_AS(E, "kind", kind_name, NULL, NULL), VALUE(E, text), VALUE(E, device), VALUE(E, sensor),
	VALUE(E, pid), VALUE(E, rank), VALUE(E, count), VALUE(E, duration_ns), VALUE(E, old_value), VALUE(E, new_value),
	VALUE(E, detail),
};
#undef E

// For pid and tid, where 0 means unknown.
static bool is_zero(const struct object_at *at)
{
	return *(const int32_t *)(const void *)((const char *)at->data + at->field->offset) == 0;
}

// Ids start at 1.
static bool is_no_id(const struct object_at *at)
{
	return *(const int64_t *)(const void *)((const char *)at->data + at->field->offset) == 0;
}

#define S struct run_span
static const struct field span_fields[] = {
	VALUE(S, id), VALUE(S, parent), VALUE(S, pid), VALUE(S, tid, .null_if = is_zero), VALUE(S, name),
	VALUE(S, begin_ns), VALUE(S, end_ns), VALUE(S, cpu_ns), VALUE(S, category),
	VALUE(S, kind, .one_of = span_kind_names), VALUE(S, close, .one_of = span_close_names),
};
#undef S

#define M struct run_user_metric
static const struct field user_metric_fields[] = {
	VALUE(M, t_ns), VALUE(M, name), VALUE(M, value), VALUE(M, span, .null_if = is_no_id), VALUE(M, pid, .null_if = is_zero),
	VALUE(M, tid, .null_if = is_zero),
};
#undef M
// clang-format on

const struct object_type run_device_type = OBJECT_TYPE("device", "A measured device.", device_fields);
const struct object_type run_process_type = OBJECT_TYPE("process", "A process of the program.", process_fields);
const struct object_type run_event_type = OBJECT_TYPE("event", "An event during the run.", event_fields);
const struct object_type run_span_type = OBJECT_TYPE("span", "A call of a code block.", span_fields);
const struct object_type run_user_metric_type = OBJECT_TYPE("user_metric", "A value that the program reported.",
	user_metric_fields);
